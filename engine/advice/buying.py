"""Which boards to buy for a rate of tokens, and which model is the largest that boards give at one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from engine.advice.replies import (
    MOST_OPTIONS,
    Asker,
    Option,
    Prices,
    Rank,
    Reply,
    best_on,
    check_tokens,
    gives,
    option_of,
    priced,
    worth,
)
from engine.advice.values import Assessment
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.units import human
from engine.ops.sizes import model_bytes

COUNTS = (1, 2, 4, 8)
BOUND_SLACK = 2.0
"""A board may read weights so many times as fast as its preset says, before it is left out untried."""
CARD_ALONE = "the card alone"
"""What `price_source` says first of a graphics card, which also needs a computer."""
DEFAULT_PROMPT_TOKENS = 16
LAN = LinkSpec(a="a", b="b", bit_per_s=1e9, delay_s=1e-4)
"""What new boards hang on where the cluster has no link: Gigabit Ethernet."""


class Offer(NamedTuple):
    """A number of boards of a kind, what ranks them, and what they draw, W."""

    board: DeviceSpec
    number: int
    expense: tuple[float, float]

    @property
    def words(self) -> str:
        alone = f" ({CARD_ALONE})" if self.board.price_source.startswith(CARD_ALONE) else ""
        return f"{self.number} × {self.board.title or self.board.name}{alone}"


# What to buy --------------------------------------------------------------------------------------
def to_buy(
    base: RunSpec,
    boards: Sequence[DeviceSpec],
    tokens_per_s: float,
    prices: Prices,
    asker: Asker,
    rank: Rank | None = None,
) -> Reply:
    """Nothing, where one device of the cluster suffices, or several. Else the boards with the least of what
    `rank` says, up to eight of a kind, on links like the first one of the cluster. `prices` stand in place of
    the boards' own. Raises `SpecError`.
    """
    check_tokens(base)
    boards = priced(boards, prices, "preset")
    unpriced = sum(board.price_usd is None for board in boards)
    rank = rank or ("price" if unpriced < len(boards) else "power")
    if rank == "price" and unpriced == len(boards):
        raise SpecError(
            "prices of presets rank boards by price, and none has one: give some, or rank by power."
        )
    wanted = f"{tokens_per_s:.3g} tokens/s of {base.model.name}"
    own = owned(base, tokens_per_s, asker)
    if own is not None and own.figure >= tokens_per_s:
        text = f"Buy nothing for {wanted}: your {own.words} {gives(own)}."
        return Reply(question="buy", sentence=text, unit="tokens/s", options=(own,))
    have = f"What is there gives at most {own.figure:.3g} tokens/s, on {own.words}. " if own else ""
    link = base.cluster.links[0] if base.cluster.links else LAN
    found: list[tuple[Offer, Assessment]] = []
    for offer in _offers(base, boards, tokens_per_s, rank):
        if any(offer.board == other.board for other, _ in found):
            continue
        best = best_on(base, _star(offer, link), asker.plainly)
        if best is not None and (best.tokens_per_s or 0.0) >= tokens_per_s:
            found.append((offer, best))
        if len(found) == MOST_OPTIONS:
            break
    on = f"on links of {human(link.bit_per_s, 'bit/s')}"
    without = f" Left out for want of a price: {unpriced} of {len(boards)} presets."
    left_out = without if rank == "price" and unpriced else ""
    if not found:
        which = "preset with a price" if rank == "price" else "preset"
        text = f"{have}No {which} reaches {wanted}, up to {COUNTS[-1]} of a kind {on}."
        return Reply(question="buy", sentence=text + left_out, unit="tokens/s")
    options = [option_of(base, _star(offer, link), offer.words, best, asker) for offer, best in found]
    least, number = found[0][0].expense[0], found[0][0].number
    by = {
        "price": f"for {least:g} dollars, the cheapest",
        "power": f"at {least:g} W, the least power",
        "number": f"with {number} board{'s' * (number > 1)} the fewest",
    }[rank]
    text = f"{have}Buy {options[0].words}: {gives(options[0])} {on}, {by} that reaches {wanted}."
    text += worth(options[0]) + left_out
    return Reply(question="buy", sentence=text, unit="tokens/s", options=tuple(options))


def owned(base: RunSpec, tokens_per_s: float, asker: Asker) -> Option | None:
    """What is there: the best device by itself if it gives so many tokens per second, else the best of these
    and of all together.
    """
    cluster, found = base.cluster, list[tuple[Assessment, ClusterSpec]]()
    devices = [cluster.devices[rank] for rank in cluster.workers if cluster.first_alike[rank] == rank]
    alone = [ClusterSpec(name=cluster.name, source=one.name, devices=(one,)) for one in devices]
    for own in [*alone, *([cluster] if len(cluster.workers) > 1 else [])]:
        if own is cluster and any((best.tokens_per_s or 0.0) >= tokens_per_s for best, _ in found):
            break
        row = best_on(base, own, asker.plainly)
        found += [(row, own)] if row is not None else []
    if not found:
        return None
    best, own = max(found, key=lambda pair: pair[0].tokens_per_s or 0.0)
    titles = {device.name: device.title or device.name for device in cluster.devices}
    words = " and ".join(titles[name] for name in best.devices if cluster.rank(name) in cluster.workers)
    return option_of(base, own, words + " alone" * (len(best.devices) == 1), best, asker)


def _offers(base: RunSpec, boards: Sequence[DeviceSpec], tokens_per_s: float, rank: Rank) -> Iterator[Offer]:
    """Offers from the least expense on, without those whose memory is too small or too slow for the model."""
    found = []
    for board in boards:
        watts = board.watts or None
        each = {"price": board.price_usd, "power": watts, "number": 1.0}[rank]
        if each is not None:
            found += [Offer(board, count, (count * each, count * (watts or inf))) for count in COUNTS]
    for offer in sorted(found, key=lambda offer: (*offer.expense, offer.number)):
        if _may_reach(base, [offer.board] * offer.number, base.model, tokens_per_s):
            yield offer


def _may_reach(base: RunSpec, boards: Sequence[DeviceSpec], model: ModelSpec, tokens_per_s: float) -> bool:
    """Whether memory is large enough and fast enough: every token reads all weights once, for all requests
    that are in work at once.
    """
    size = model_bytes(model)
    rounds_per_s = tokens_per_s / base.workload.together
    rate = BOUND_SLACK * sum(board.memory_byte_per_s for board in boards)
    return sum(board.usable_bytes for board in boards) >= size and rate >= size * rounds_per_s


def _star(offer: Offer, link: LinkSpec) -> ClusterSpec:
    names = [f"board-{number}" for number in range(1, offer.number + 1)]
    devices = tuple(offer.board.model_copy(update={"name": name, "role": "worker"}) for name in names)
    if offer.number == 1:
        return ClusterSpec(name="bought", source=names[0], devices=devices)
    ends = [{"a": name, "b": "hub", "parallel": 1} for name in names]
    links = tuple(link.model_copy(update=end) for end in ends)
    return ClusterSpec(
        name="bought", source=names[0], devices=devices, switches=(SwitchSpec(name="hub"),), links=links
    )


# The largest model --------------------------------------------------------------------------------
def largest_model(
    base: RunSpec,
    models: Mapping[str, tuple[ModelSpec, WeightsRef]],
    tokens_per_s: float,
    asker: Asker,
) -> Reply:
    """The largest of `models`, by the bytes of their weights. Raises `SpecError`."""
    # Another model has other tokens: the prompt keeps its length.
    length = base.workload.prompt_tokens or DEFAULT_PROMPT_TOKENS
    workload = base.workload.model_copy(update={"prompt": None, "prompt_tokens": length})
    base = base.model_copy(update={"workload": workload})
    generating = [pair for pair in models.values() if pair[0].has_head and pair[0].reads_text]
    missed: Option | None = None
    boards = [base.cluster.devices[rank] for rank in base.cluster.workers]
    for model, weights in sorted(generating, key=lambda pair: -model_bytes(pair[0])):
        if not _may_reach(base, boards, model, tokens_per_s):
            continue
        run = base.model_copy(update={"model": model, "weights": weights})
        best = best_on(run, base.cluster, asker.plainly)
        if best is None:
            continue
        words = f"{model.name} ({human(model_bytes(model), 'B')} of weights)"
        option = option_of(run, base.cluster, words, best, asker)
        if option.figure >= tokens_per_s:
            more = f" The next larger, {missed.words}, {gives(missed)}." if missed else ""
            text = f"The largest model of the catalogue that {base.cluster.name} gives at {tokens_per_s:.3g} "
            text += f"tokens/s is {words}: {gives(option)}.{more}"
            options = (option, missed) if missed else (option,)
            return Reply(question="largest", sentence=text, unit="tokens/s", options=options)
        missed = option
    text = f"No model of the catalogue reaches {tokens_per_s:.3g} tokens/s on {base.cluster.name}."
    more = f" {missed.words} {gives(missed)}." if missed else ""
    return Reply(
        question="largest", sentence=text + more, unit="tokens/s", options=(missed,) if missed else ()
    )
