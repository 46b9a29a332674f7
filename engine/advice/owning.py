"""Of a cluster that there is: which link is worth ten times its rate, what a token costs, how long a context
its memory holds, and how long weights take to its boards. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from engine.advice.candidates import Candidate, with_link
from engine.advice.changes import best_of, change_of, specs_to_try
from engine.advice.replies import (
    METHODS,
    MOST_OPTIONS,
    Asker,
    Option,
    Prices,
    Reply,
    check_tokens,
    ends_of,
    on_real_boards,
    price_usd,
    priced,
    rate_per_usd,
    tokens_per_j,
    worth,
)
from engine.advice.values import Assessment, Objective
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import ModelSpec, QuantisedBits, in_bits
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.token_bucket import FRAME_BYTES, SEGMENT_BYTES
from engine.domain.units import between, human, human_j, human_s
from engine.domain.workload import Workload
from engine.ops.ledger import Ledger
from engine.strategies.registry import strategy

TIMES = 10.0
"""How many times its rate an upgraded link has: from Fast Ethernet to Gigabit, from there to 10 Gigabit."""
YEARS, YEAR_S = 3.0, 365.25 * 86400


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
    """The least energy of a token; the least money where the price of every board is known, boards written
    off over three years of work. `prices` stand in place of the devices' own. Where a board that some method
    computes on has no price, no method's boards are counted: so all are compared by the same.

    Energy is that of computing and sending, without what idle boards draw. Raises `SpecError`.
    """
    check_tokens(base)
    devices = priced(base.cluster.devices, prices, f"device of {base.cluster.name}")
    base = base.model_copy(update={"cluster": base.cluster.model_copy(update={"devices": devices})})
    tokens = base.workload.new_tokens * base.workload.together
    able = [
        row for row in rows if row.lossless and row.energy_j is not None and row.tokens_per_s and not row.like
    ]
    if not able:
        sentence = f"No strategy has a plan for {base.model.name} on {base.cluster.name}."
        return Reply(question="cost", sentence=sentence, unit="J")
    used = {name for row in able for name in row.devices}
    unpriced = sorted(device.name for device in devices if device.name in used and device.price_usd is None)
    if prices.boards and unpriced:
        raise SpecError(
            f"prices: {', '.join(unpriced)} has none: give one for every device of {base.cluster.name}."
        )
    is_priced = not unpriced or prices.per_kwh is not None
    options = []
    for row in able:
        joules = (row.energy_j or 0.0) / tokens
        usd = price_usd(base.cluster, row.devices)
        counted_usd = 0.0 if unpriced else usd or 0.0
        money = [_money(counted_usd, prices, joules, one) for one in (row.tokens_per_s, *ends_of(row))]
        figure, *ends = money if is_priced else [joules]
        low, high = (min(ends), max(ends)) if ends and not unpriced else (None, None)
        options.append(
            Option(
                words=f"{row.strategy} on {', '.join(row.devices)}",
                strategy=row.strategy,
                figure=figure,
                low=low,
                high=high,
                tokens_per_s_per_usd=rate_per_usd(row, usd),
                tokens_per_j=tokens_per_j(base, row),
            )
        )
    options.sort(key=lambda option: option.figure)
    best = options[0]
    unit = "dollars per million tokens" if is_priced else "J"
    joules = (_of(able, best).energy_j or 0.0) / tokens
    energy = f"{human_j(joules)}, {1e6 * joules / 3.6e6:.3g} kWh per million tokens"
    said = f"{best.figure:.3g} dollars per million tokens ({energy})" if is_priced else energy
    boards = on_real_boards(best)
    what = "energy of computing and sending, "
    if not unpriced:
        what = f"boards over {YEARS:g} years" + (" and energy, " if prices.per_kwh is not None else ", ")
    text = f"A token of {base.model.name} costs least with {best.words}: {said}{boards}, {what}"
    text += f"at {_of(able, best).tokens_per_s:.3g} tokens/s.{worth(best)}"
    if unpriced:
        text += f" Boards are not counted for any method: no price of {', '.join(unpriced)} is known."
    return Reply(question="cost", sentence=text, unit=unit, options=tuple(options[:MOST_OPTIONS]))


def _money(boards_usd: float, prices: Prices, joules: float, tokens_per_s: float | None) -> float:
    """What a million tokens cost, US dollars, on boards that cost `boards_usd` together."""
    assert tokens_per_s, "only rows with a rate are asked about"
    energy = joules / 3.6e6 * (prices.per_kwh or 0.0)
    return 1e6 * (boards_usd / (YEARS * YEAR_S * tokens_per_s) + energy)


def _of(rows: Sequence[Assessment], option: Option) -> Assessment:
    return next(row for row in rows if row.strategy == option.strategy)


# What fits ----------------------------------------------------------------------------------------
BITS: tuple[QuantisedBits | None, ...] = (4, 8, None)
MOST_TOGETHER = 1024


def longest_context(base: RunSpec) -> Reply:
    """The longest context of one request, and the most requests of the workload's length at once, for which
    the methods that boards are tried with have a plan. Raises `SpecError`.
    """
    check_tokens(base)
    plain = base.model.model_copy(update={"weight_bits": 0.0})
    tokens = (base.workload.prompt_tokens or 1) + base.workload.new_tokens
    options, said = [], []
    for bits in BITS:
        model = in_bits(plain, bits)
        found = [(*_sizes_that_fit(base, model, name), name) for name in METHODS]
        longest, _, method = max(found, key=lambda each: each[0])
        together = max(many for _, many, _ in found)
        words = f"in {bits or 8 * model.element_bytes} bits"
        many = f"{together:,}{' or more' if together == MOST_TOGETHER else ''}"
        said.append(
            f"{longest:,} tokens {words} ({method}; or {many} at once)" if longest else f"none {words}"
        )
        options.append(Option(words=words, strategy=method if longest else "none", figure=longest))
    text = (
        f"The longest context of {plain.name} for which {base.cluster.name} has memory: {', '.join(said)}; "
    )
    text += f"at once are requests of {tokens:,} tokens, and the model has {plain.max_positions:,} positions."
    return Reply(question="context", sentence=text, unit="tokens", options=tuple(options))


def _sizes_that_fit(base: RunSpec, model: ModelSpec, name: str) -> tuple[int, int]:
    """The longest context of one request, and the most requests at once, of a method."""
    work, new = base.workload, base.workload.new_tokens
    longest = _longest(
        range(new + 1, model.max_positions + 1),
        lambda length: _has_plan(base, model, name, length - new, 1),
    )
    prompt = work.prompt_tokens or 1
    together = _longest(
        range(1, MOST_TOGETHER + 1), lambda count: _has_plan(base, model, name, prompt, count)
    )
    return longest, together


def _longest(numbers: range, fits: Callable[[int], bool]) -> int:
    """The largest of ascending `numbers` that fits, as all smaller ones do; 0 if none."""
    count = bisect_left(numbers, True, key=lambda number: not fits(number))
    return numbers[count - 1] if count else 0


def _has_plan(base: RunSpec, model: ModelSpec, name: str, prompt_tokens: int, together: int) -> bool:
    work = Workload(
        prompt_tokens=prompt_tokens,
        new_tokens=base.workload.new_tokens,
        requests=together,
        pattern="bursty" if together > 1 else "sporadic",
    )
    try:
        return _planned(base, model, name, work) is not None
    except PlanError:
        return False


def _planned(base: RunSpec, model: ModelSpec, name: str, workload: Workload) -> Plan | None:
    """A plan by the method's own rule: a faster one takes longer to find and no less memory. None: the
    method does not run this model here.
    """
    chosen = strategy(name)
    if chosen.supports(base.cluster, model):
        return None
    params = {"planner": "paper"} if "planner" in chosen.Params.model_fields else {}
    return chosen.plan(base.cluster, model, workload, chosen.Params.parse(params, name))


# The start ----------------------------------------------------------------------------------------
def time_to_start(base: RunSpec, rows: Sequence[Assessment], objective: Objective) -> Reply:
    """How long the weights of the best strategy's plan take from the source to their boards: all at once, and
    one board after another, by TCP in full frames.
    """
    best, cluster = best_of(rows, objective), base.cluster
    plan = _planned(base, base.model, best.strategy, base.workload) if best else None
    if best is None or plan is None:
        text = f"No strategy has a plan for {base.model.name} on {cluster.name}."
        return Reply(question="start", sentence=text, unit="s")
    sent = {rank: _held_bytes(base.model, plan, rank) for rank in cluster.workers}
    sent = {rank: size for rank, size in sent.items() if size and rank != cluster.source_rank}
    if not sent:
        text = f"No time: with {best.strategy} all weights of {base.model.name} stay on {cluster.source}."
        return Reply(question="start", sentence=text, unit="s")
    bits_per_byte = 8 * FRAME_BYTES / SEGMENT_BYTES
    crossing: Counter[tuple[str, float]] = Counter()
    options = []
    for rank, size in sent.items():
        rates = []
        for hop in cluster.path(cluster.source_rank, rank):
            link = cluster.links[hop.link]
            rates.append(link.rate(hop.forward))
            crossing[f"{link.name} {hop.forward}", rates[-1]] += size
        words = f"{human(size, 'B')} to {cluster.devices[rank].name}"
        options.append(Option(words=words, strategy=best.strategy, figure=size * bits_per_byte / min(rates)))
    (busiest, _), at_once_s = max(
        (((name, rate), size * bits_per_byte / rate) for (name, rate), size in crossing.items()),
        key=lambda each: each[1],
    )
    in_turn_s = sum(option.figure for option in options)
    options.sort(key=lambda option: -option.figure)
    text = f"The weights of {base.model.name} for {best.strategy}, {human(sum(sent.values()), 'B')}, take "
    text += f"{between(human_s(at_once_s), human_s(in_turn_s))} from {cluster.source} to the boards: all at "
    text += f"once, when {busiest.split()[0]} is busiest, or one board after another."
    return Reply(question="start", sentence=text, unit="s", options=tuple(options[:MOST_OPTIONS]))


def _held_bytes(model: ModelSpec, plan: Plan, rank: int) -> int:
    """Bytes of all weights that a device has, on its disk too."""
    ledger = Ledger("", inf, model)
    for piece in {holding.slice: None for holding in plan.holdings if holding.device == rank}:
        ledger.load(piece)
    return ledger.weights_bytes
