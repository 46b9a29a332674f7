"""Which link is worth ten times its rate, and what a token costs, of a cluster that there is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engine.advice.candidates import Candidate, with_link
from engine.advice.changes import best_of, change_of, specs_to_try
from engine.advice.replies import (
    MOST_OPTIONS,
    Asker,
    Option,
    Prices,
    Reply,
    check_tokens,
    ends_of,
    on_real_boards,
)
from engine.advice.values import Assessment, Objective
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_j

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
    """The least energy of a token; with prices the least money, boards written off over three years of work.

    Energy is that of computing and sending, without what idle boards draw. Raises `SpecError`.
    """
    check_tokens(base)
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
        money = [_money(base, row, prices, joules, one) for one in (row.tokens_per_s, *ends_of(row))]
        figure, *ends = money if is_priced else [joules]
        low, high = (min(ends), max(ends)) if ends and prices.boards else (None, None)
        words = f"{row.strategy} on {', '.join(row.devices)}"
        options.append(Option(words=words, strategy=row.strategy, figure=figure, low=low, high=high))
    options.sort(key=lambda option: option.figure)
    best = options[0]
    unit = "per million tokens" if is_priced else "J"
    joules = (_of(able, best).energy_j or 0.0) / tokens
    energy = f"{human_j(joules)}, {1e6 * joules / 3.6e6:.3g} kWh per million tokens"
    said = f"{best.figure:.3g} per million tokens ({energy})" if is_priced else energy
    boards = on_real_boards(best)
    what = "energy of computing and sending, "
    if prices.boards:
        what = f"boards over {YEARS:g} years" + (" and energy, " if prices.per_kwh is not None else ", ")
    text = f"A token of {base.model.name} costs least with {best.words}: {said}{boards}, {what}"
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


def _of(rows: Sequence[Assessment], option: Option) -> Assessment:
    return next(row for row in rows if row.strategy == option.strategy)
