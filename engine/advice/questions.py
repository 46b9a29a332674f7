"""Four questions of somebody who builds a cluster, each answered in one sentence from predictions. Pure.

buy       which boards, and how many, give so many tokens per second of a model
largest   which model is the largest that these boards give at so many tokens per second
link      which link is worth ten times its rate
cost      what a token costs: energy, and money where prices are given
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from engine.advice.candidates import Candidate, with_link
from engine.advice.changes import best_of, change_of, specs_to_try
from engine.advice.values import Assessment, Objective
from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.units import human, human_j
from engine.domain.values import NonNegative, Value
from engine.ops.sizes import model_bytes

Question = Literal["buy", "largest", "link", "cost"]
AssessAll = Callable[[Sequence[RunSpec]], Sequence[Assessment]]
RATE: Objective = "tokens_per_s"
METHODS = ("single", "edgeshard", "megatron")
"""The strategies that boards and models are tried with: alone, a pipeline, and every layer on all boards at
once.
"""
COUNTS = (1, 2, 4, 8)
MOST_OPTIONS = 3
TIMES = 10.0
"""How many times its rate an upgraded link has: from Fast Ethernet to Gigabit, from there to 10 Gigabit."""
BOUND_SLACK = 2.0
"""A board may read weights so many times as fast as its preset says, before it is left out untried."""
DEFAULT_PROMPT_TOKENS = 16
YEARS, YEAR_S = 3.0, 365.25 * 86400
LAN = LinkSpec(a="a", b="b", bit_per_s=1e9, delay_s=1e-4)
"""What new boards hang on where the cluster has no link: Gigabit Ethernet."""


class Prices(Value):
    """Prices in any currency: of a board, by the name of its preset (`buy`) or its device (`cost`), and of a
    kilowatt-hour.
    """

    boards: dict[str, NonNegative] = Field(default_factory=dict)
    per_kwh: NonNegative | None = None


class Option(Value):
    """One way, the figure of its best strategy, and that with boards at both ends of their rates."""

    words: str
    strategy: str
    figure: float
    low: float | None = None
    high: float | None = None


class Reply(Value):
    """The answer to a question. `unit` is that of the options' figures; the best option comes first."""

    question: Question
    sentence: str
    unit: str
    options: tuple[Option, ...] = ()


class Asker(NamedTuple):
    """Asks for predictions of runs, and of the same with both ends of the boards' rates."""

    plainly: AssessAll
    with_interval: AssessAll


class Offer(NamedTuple):
    """A number of boards of a kind, and what they cost or draw: the fewer the better."""

    board: DeviceSpec
    number: int
    expense: float

    @property
    def words(self) -> str:
        return f"{self.number} × {self.board.title or self.board.name}"


# What to buy --------------------------------------------------------------------------------------
def to_buy(
    base: RunSpec, boards: Sequence[DeviceSpec], tokens_per_s: float, prices: Prices, asker: Asker
) -> Reply:
    """The cheapest boards by `prices`, or those that draw least power where there are none, up to eight of a
    kind, on links like the first one of the cluster. Raises `SpecError`.
    """
    _check_tokens(base)
    link = base.cluster.links[0] if base.cluster.links else LAN
    found: list[tuple[Offer, Assessment]] = []
    for offer in _offers(base, boards, tokens_per_s, prices):
        if any(offer.board == other.board for other, _ in found):
            continue
        best = _best_on(base, _star(offer, link), asker.plainly)
        if best is not None and (best.tokens_per_s or 0.0) >= tokens_per_s:
            found.append((offer, best))
        if len(found) == MOST_OPTIONS:
            break
    wanted = f"{tokens_per_s:.3g} tokens/s of {base.model.name}"
    on = f"on links of {human(link.bit_per_s, 'bit/s')}"
    if not found:
        most = f"up to {COUNTS[-1]} of a kind {on}"
        return Reply(question="buy", sentence=f"No preset reaches {wanted}, {most}.", unit="tokens/s")
    options = [_option(base, _star(offer, link), offer.words, best, asker) for offer, best in found]
    expense = found[0][0].expense
    by = f"for {expense:g}, the cheapest" if prices.boards else f"at {expense:g} W, the least power"
    text = f"Buy {options[0].words}: {_gives(options[0])} {on}, {by} that reaches {wanted}."
    return Reply(question="buy", sentence=text, unit="tokens/s", options=tuple(options))


def _offers(
    base: RunSpec, boards: Sequence[DeviceSpec], tokens_per_s: float, prices: Prices
) -> Iterator[Offer]:
    """Offers from the least expense on, without those whose memory is too small or too slow for the model."""
    found = []
    for board in boards:
        each = prices.boards.get(board.name) if prices.boards else board.watts or None
        if each is not None:
            found += [Offer(board, count, count * each) for count in COUNTS]
    for offer in sorted(found, key=lambda offer: (offer.expense, offer.number)):
        if _may_reach(base, [offer.board] * offer.number, base.model, tokens_per_s):
            yield offer


def _may_reach(base: RunSpec, boards: Sequence[DeviceSpec], model: ModelSpec, tokens_per_s: float) -> bool:
    """Whether memory is large enough and fast enough: every token reads all weights once, for all requests
    that are in work at once.
    """
    size = model_bytes(model)
    rounds_per_s = tokens_per_s / base.workload.together
    rate = BOUND_SLACK * sum(board.memory_byte_per_s for board in boards)
    return sum(board.memory_bytes for board in boards) >= size and rate >= size * rounds_per_s


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
        best = _best_on(run, base.cluster, asker.plainly)
        if best is None:
            continue
        words = f"{model.name} ({human(model_bytes(model), 'B')} of weights)"
        option = _option(run, base.cluster, words, best, asker)
        if option.figure >= tokens_per_s:
            more = f" The next larger, {missed.words}, {_gives(missed)}." if missed else ""
            text = f"The largest model of the catalogue that {base.cluster.name} gives at {tokens_per_s:.3g} "
            text += f"tokens/s is {words}: {_gives(option)}.{more}"
            options = (option, missed) if missed else (option,)
            return Reply(question="largest", sentence=text, unit="tokens/s", options=options)
        missed = option
    text = f"No model of the catalogue comes at {tokens_per_s:.3g} tokens/s from {base.cluster.name}."
    more = f" {missed.words} {_gives(missed)}." if missed else ""
    return Reply(
        question="largest", sentence=text + more, unit="tokens/s", options=(missed,) if missed else ()
    )


# The link -----------------------------------------------------------------------------------------
def link_to_upgrade(base: RunSpec, rows: Sequence[Assessment], objective: Objective, asker: Asker) -> Reply:
    """Every link with ten times its rate, with the best strategies of `rows`, which were assessed without."""
    before, cluster = best_of(rows, objective), base.cluster
    if before is None or not cluster.links:
        why = "there is no link" if not cluster.links else f"no strategy has a plan for {base.model.name}"
        return Reply(question="link", sentence=f"None: {why}.", unit="times")
    found = []
    for link in cluster.links:
        rate = human(TIMES * link.bit_per_s, "bit/s")
        words = f"{link.name} with {rate}"
        candidate = Candidate("rate", link.name, words, with_link(cluster, link.name, TIMES, 1.0))
        after = best_of(asker.plainly(specs_to_try(base, rows, candidate, objective)), objective)
        if after is not None:
            found.append(change_of(candidate, before, after, objective))
    found.sort(key=lambda change: -(change.gain or 0.0))
    options = tuple(
        Option(words=change.words, strategy=change.strategy_after, figure=change.gain or 0.0)
        for change in found[:MOST_OPTIONS]
    )
    if not found or not found[0].makes_a_difference or (found[0].gain or 0.0) < 1.0:
        text = f"None: no single link with {TIMES:g} times its rate makes a difference of 2 %"
        text += f"; with {before.strategy}, {before.reason[:1].lower()}{before.reason[1:]}".rstrip(".")
        return Reply(question="link", sentence=f"{text}.", unit="times", options=options)
    best = found[0]
    second = f" The next, {found[1].words}: {found[1].gain:.2f} times." if len(found) > 1 else ""
    return Reply(question="link", sentence=f"{best.sentence}{second}", unit="times", options=options)


# What a token costs -------------------------------------------------------------------------------
def cost_per_token(base: RunSpec, rows: Sequence[Assessment], prices: Prices) -> Reply:
    """The least energy of a token; with prices the least money, boards written off over three years of work.

    Energy is that of computing and sending, without what idle boards draw. Raises `SpecError`.
    """
    _check_tokens(base)
    tokens = base.workload.new_tokens * base.workload.together
    able = [
        row for row in rows if row.lossless and row.energy_j is not None and row.tokens_per_s and not row.like
    ]
    if not able:
        sentence = f"No strategy has a plan for {base.model.name} on {base.cluster.name}."
        return Reply(question="cost", sentence=sentence, unit="J")
    is_priced = bool(prices.boards) or prices.per_kwh is not None
    options = []
    for row in able:
        joules = (row.energy_j or 0.0) / tokens
        money = [_money(base, row, prices, joules, one) for one in (row.tokens_per_s, *_ends(row))]
        figure, *ends = money if is_priced else [joules]
        low, high = (min(ends), max(ends)) if ends and prices.boards else (None, None)
        words = f"{row.strategy} on {', '.join(row.devices)}"
        options.append(Option(words=words, strategy=row.strategy, figure=figure, low=low, high=high))
    options.sort(key=lambda option: option.figure)
    best = options[0]
    unit = "per million tokens" if is_priced else "J"
    said = f"{best.figure:.3g} per million tokens" if is_priced else human_j(best.figure)
    between = f" ({best.low:.3g} to {best.high:.3g} on real boards)" if best.low is not None else ""
    what = "energy of computing and sending, "
    if prices.boards:
        what = f"boards over {YEARS:g} years" + (" and energy, " if prices.per_kwh is not None else ", ")
    text = f"A token of {base.model.name} costs least with {best.words}: {said}{between}, {what}"
    text += f"at {_of(able, best).tokens_per_s:.3g} tokens/s."
    return Reply(question="cost", sentence=text, unit=unit, options=tuple(options[:MOST_OPTIONS]))


def _money(
    base: RunSpec, row: Assessment, prices: Prices, joules: float, tokens_per_s: float | None
) -> float:
    """What a million tokens cost, on the devices that `row` uses. Raises `SpecError` for one without a price
    where others have one.
    """
    total = 0.0
    for name in row.devices if prices.boards else ():
        if name not in prices.boards:
            raise SpecError(f"prices: {name} has none: give one for every device of {base.cluster.name}.")
        total += prices.boards[name]
    assert tokens_per_s, "only rows with a rate are asked about"
    energy = joules / 3.6e6 * (prices.per_kwh or 0.0)
    return 1e6 * (total / (YEARS * YEAR_S * tokens_per_s) + energy)


def _ends(row: Assessment) -> tuple[float, ...]:
    return tuple(end[RATE] for end in (row.slow, row.fast) if RATE in end)


# What they share ----------------------------------------------------------------------------------
def _check_tokens(base: RunSpec) -> None:
    if not base.model.has_head or not base.workload.new_tokens:
        raise SpecError(f"{base.model.name}: the question is about tokens, and this run generates none.")


def _best_on(base: RunSpec, cluster: ClusterSpec, assess_all: AssessAll) -> Assessment | None:
    methods = METHODS if len(cluster.workers) > 1 else METHODS[:1]
    return best_of(assess_all([_run(base, cluster, name) for name in methods]), RATE)


def _option(base: RunSpec, cluster: ClusterSpec, words: str, best: Assessment, asker: Asker) -> Option:
    """An option with its interval, which is predicted only for what is shown."""
    (row,) = asker.with_interval([_run(base, cluster, best.strategy)])
    low, high = sorted(_ends(row)) if len(_ends(row)) == 2 else (None, None)
    return Option(words=words, strategy=best.strategy, figure=best.tokens_per_s or 0.0, low=low, high=high)


def _run(base: RunSpec, cluster: ClusterSpec, name: str) -> RunSpec:
    return base.model_copy(update={"cluster": cluster, "strategy": name, "params": {}})


def _gives(option: Option) -> str:
    between = f" ({option.low:.3g} to {option.high:.3g} on real boards)" if option.low is not None else ""
    return f"gives {option.figure:.3g} tokens/s with {option.strategy}{between}"


def _of(rows: Sequence[Assessment], option: Option) -> Assessment:
    return next(row for row in rows if row.strategy == option.strategy)
