"""Answers whether several boards are better than one for a model: a sentence, and what it would take if not.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.advice.changes import BETTER, best_of
from engine.advice.values import Answer, Assessment, Objective
from engine.domain.cluster import ClusterSpec
from engine.domain.spec import RunSpec
from engine.domain.units import between, human, human_j, human_s
from engine.strategies.planner.choice import WORTH_NAMING
from engine.strategies.registry import with_strategy

AssessAll = Callable[[Sequence[RunSpec]], Sequence[Assessment]]
NO_TIME = 1e6
"""How many times as high a rate is that needs no time."""
COARSE = tuple(2.0**step for step in range(1, 11))
FINE = tuple(2.0 ** (step / 8) for step in range(-7, 1))
"""Factors of the links' rates that are tried: first steps of two, then eight between the last two of them."""
AT_ONCE = 4
"""Factors that are tried side by side: those after the first that wins are not needed."""
PER: dict[Objective, str] = {
    "first_token_s": " to the first token",
    "per_token_s": " per token",
    "total_s": " for the whole answer",
    "tokens_per_s": " a second",
    "peak_memory_bytes": " on the fullest",
    "energy_j": "",
}


def answer(
    base: RunSpec, rows: Sequence[Assessment], objective: Objective, assess_all: AssessAll | None
) -> Answer:
    """The answer that the assessments of every strategy on the cluster of `base` give; `assess_all` predicts
    a few runs. Without it the answer does not say what binds, nor what a yes would need.
    """
    names = {base.cluster.devices[rank].name for rank in base.cluster.workers}
    planned = [
        row.model_copy(update={"devices": tuple(device for device in row.devices if device in names)})
        for row in rows
        if row.devices  # a terminal, which may look up tokens and compute the head, is none that one adds
    ]
    alone = best_of([row for row in planned if len(row.devices) == 1], objective)
    together = best_of([row for row in planned if len(row.devices) > 1], objective)
    workers = len(base.cluster.workers)
    if alone is None and together is None:
        return Answer(yes=None, sentence=f"No strategy has a plan for {base.model.name} on these devices.")
    if together is None:
        assert alone is not None, "together or alone"
        figure = f"{_said(alone, objective)}{_interval(alone, objective)}"
        if workers == 1:
            text = f"There is one device to compute: {figure} on {alone.devices[0]}."
        else:
            remedy = _remedy(base, alone, planned, objective, assess_all)
            text = f"No: every method that can run computes on {alone.devices[0]} alone: {figure}{remedy}."
        return Answer(
            yes=None if workers == 1 else False, sentence=text + _rates(alone), alone=alone.figure(objective)
        )
    if alone is None:
        text = (
            f"Yes: {base.model.name} fits no single device; {together.strategy} on "
            f"{_how_many(together, workers)} needs {_said(together, objective)}"
            f"{_interval(together, objective)}."
        )
        return Answer(
            yes=True,
            sentence=text + _rates(together),
            strategy=together.strategy,
            together=together.figure(objective),
        )
    return _chosen(base, alone, together, planned, objective, assess_all)


def _chosen(
    base: RunSpec,
    alone: Assessment,
    together: Assessment,
    planned: Sequence[Assessment],
    objective: Objective,
    assess_all: AssessAll | None,
) -> Answer:
    gain = _gain(alone.figure(objective), together.figure(objective), objective)
    figures = f"{_said(alone, objective, '')} → {_said(together, objective)}{_interval(together, objective)}"
    where = f"{together.strategy} on {_how_many(together, len(base.cluster.workers))}"
    if gain >= WORTH_NAMING:
        why = _why(base, alone, objective, assess_all)
        than = "as" if BETTER[objective].startswith("as ") else "than"
        text = f"Yes: {where} is {gain:.2g} times {BETTER[objective]} {than} {alone.devices[0]} alone"
        text += f" ({figures})"
        text += f"{why}.{_doubt(alone, together, objective, True)}"
    else:
        same = "no faster than" if gain > 1 / WORTH_NAMING else f"{1 / gain:.2g} times as slow as"
        if objective in ("peak_memory_bytes", "energy_j"):
            same = "no better than"
        text = f"No: {where} is {same} {alone.devices[0]} alone ({figures})"
        text += f"{_remedy(base, alone, planned, objective, assess_all)}."
        text += _doubt(alone, together, objective, False)
    return Answer(
        yes=gain >= WORTH_NAMING,
        sentence=text + _rates(together),
        strategy=together.strategy,
        alone=alone.figure(objective),
        together=together.figure(objective),
        gain=gain,
    )


def _gain(alone: float | None, together: float | None, objective: Objective) -> float:
    """How many times better several are."""
    if not alone or not together:
        return 1.0
    return together / alone if objective == "tokens_per_s" else alone / together


def _why(base: RunSpec, alone: Assessment, objective: Objective, assess_all: AssessAll | None) -> str:
    """What one board has too little of: the rate that would save most if it took no time."""
    if assess_all is None or objective in ("peak_memory_bytes", "energy_j"):
        return ""
    run = with_strategy(base, alone.strategy, params={})
    without: dict[str, dict[str, Callable[[Any], Any]]] = {
        "memory bandwidth binds": {"memory_byte_per_s": _no_time},
        "arithmetic binds": {
            "flop_per_s": _no_time,
            "format_rates": lambda rows: tuple(
                row.model_copy(update={"flop_per_s": _no_time(row.flop_per_s)}) for row in rows
            ),
            "family_rates": lambda rows: (),
        },
        "its disk binds": {"disk_byte_per_s": _no_time},
    }
    specs = [_with_devices(run, change) for change in without.values()]
    gains = [
        _gain(alone.figure(objective), row.figure(objective), objective) if row.total_s is not None else 1.0
        for row in assess_all(specs)
    ]
    most = max(gains)
    binds = list(without)[gains.index(most)]
    return f", because {binds} on one" if most >= 1.1 else ""


def _no_time(rate: float) -> float:
    return rate * NO_TIME


def _with_devices(run: RunSpec, change: dict[str, Callable[[Any], Any]]) -> RunSpec:
    devices = tuple(
        device.model_copy(update={name: make(getattr(device, name)) for name, make in change.items()})
        for device in run.cluster.devices
    )
    return run.model_copy(update={"cluster": run.cluster.model_copy(update={"devices": devices})})


def _remedy(
    base: RunSpec,
    alone: Assessment,
    planned: Sequence[Assessment],
    objective: Objective,
    assess_all: AssessAll | None,
) -> str:
    """The rate of the links from which on several boards win, and with which of the methods that have a plan:
    the best of them where links need no time.
    """
    if assess_all is None or objective in ("peak_memory_bytes", "energy_j"):
        return ""
    names = dict.fromkeys(row.strategy for row in planned if row.lossless)
    runs = [with_strategy(base, name, params={}) for name in names]

    def wins(row: Assessment) -> bool:
        gain = _gain(alone.figure(objective), row.figure(objective), objective)
        return len(row.devices) > 1 and gain >= WORTH_NAMING

    def best(delay: float) -> Assessment | None:
        found = assess_all([_with_links(run, NO_TIME, delay) for run in runs])
        return best_of([row for row in found if wins(row)], objective)

    winner = best(1.0)
    if winner is None:
        if best(0.0) is not None:
            return "; no rate of the links changes that, their delay would have to be smaller"
        return "; not even links that need no time would change that"
    run = with_strategy(base, winner.strategy, params={})

    def first_of(factors: Sequence[float]) -> float | None:
        for at in range(0, len(factors), AT_ONCE):
            some = factors[at : at + AT_ONCE]
            found = assess_all([_with_links(run, factor) for factor in some])
            if winning := [factor for factor, row in zip(some, found, strict=True) if wins(row)]:
                return winning[0]
        return None

    first = first_of(COARSE)
    if first is None:
        return f"; the links would need more than {COARSE[-1]:.0f} times their rate"
    needed = first_of([first * step for step in FINE]) or first
    return f"{_needed(base.cluster, needed)}, with {winner.strategy}"


def _with_links(run: RunSpec, factor: float, delay: float = 1.0) -> RunSpec:
    links = tuple(
        link.model_copy(
            update={
                "bit_per_s": link.bit_per_s * factor,
                "reverse_bit_per_s": link.reverse_bit_per_s and link.reverse_bit_per_s * factor,
                "delay_s": link.delay_s * delay,
                "reverse_delay_s": link.reverse_delay_s and link.reverse_delay_s * delay,
            }
        )
        for link in run.cluster.links
    )
    cluster = run.cluster
    kept = {name: getattr(cluster, name) for name in ClusterSpec.model_fields}
    return run.model_copy(update={"cluster": ClusterSpec(**{**kept, "links": links})})


def _needed(cluster: ClusterSpec, factor: float) -> str:
    rates = {rate for link in cluster.links for rate in (link.rate(True), link.rate(False))}
    if len(rates) == 1:
        return f"; the links would need {human(rates.pop() * factor, 'bit/s', 2)}"
    return f"; the links would need {factor:.2g} times their rates"


def _doubt(alone: Assessment, together: Assessment, objective: Objective, yes: bool) -> str:
    """Whether the answer is the same at both ends of the boards' rates."""
    ends = [
        (words, _gain(one.get(objective), other.get(objective), objective))
        for words, one, other in (
            ("fast", alone.fast, together.fast),
            ("slow", alone.slow, together.slow),
        )
        if objective in one and objective in other
    ]
    if not ends:
        return ""
    against = [(words, gain) for words, gain in ends if (gain >= WORTH_NAMING) != yes]
    if against:
        words, gain = against[0]
        other = "no" if yes else "yes"
        return f" If the boards are as {words} as their rates may be, {other}: {gain:.2g} times."
    low, high = sorted(gain for _, gain in ends)
    return f" That holds however fast the boards are: {between(f'{low:.2g}', f'{high:.2g}')} times."


def _how_many(row: Assessment, workers: int) -> str:
    return f"all {workers} devices" if len(row.devices) == workers else f"{len(row.devices)} of {workers}"


def _interval(row: Assessment, objective: Objective) -> str:
    low, high = sorted((row.fast.get(objective, 0.0), row.slow.get(objective, 0.0)))
    ends = between(_amount(low, objective), _amount(high, objective))
    return f", {ends} on real boards" if low else ""


def _rates(row: Assessment) -> str:
    return f" Real boards: {row.basis}." if row.basis else ""


def _said(row: Assessment, objective: Objective, per: str | None = None) -> str:
    return _amount(row.figure(objective) or 0.0, objective) + (PER[objective] if per is None else per)


def _amount(value: float, objective: Objective) -> str:
    if objective == "energy_j":
        return human_j(value)
    if objective == "peak_memory_bytes":
        return human(value, "B")
    return f"{value:.3g} tokens" if objective == "tokens_per_s" else human_s(float(f"{value:.2g}"))
