"""What the figure of compared runs shows: which metric against which parameter, and as what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.domain.report import RunReport
from engine.domain.values import Value
from engine.reports.compare import Comparison
from engine.reports.metric import Metric
from engine.reports.parameters import Parameter, Repeats, key_of, telling

TOKENS, RUN, NONE = "token_s", "run", ""
"""The metric that single tokens have; x of every run by itself; no colour."""

Kind = Literal["lines", "bars", "boxes"]


class Chosen(Value):
    """What a person chose of a view; the rest follows from the runs."""

    metric: str | None = None
    x: str | None = None
    series: str | None = None
    kind: Kind | None = None
    log_x: bool | None = None
    log_y: bool = False


class RunsView(Value):
    """What a figure of runs shows: `x` and `series` are paths of parameters; x may be `run`, series empty."""

    metric: str
    x: str
    series: str
    kind: Kind
    log_x: bool
    log_y: bool


class Compared(NamedTuple):
    reports: Sequence[RunReport]
    names: Sequence[str]
    """What people call the runs: their numbers."""
    comparison: Comparison
    parameters: tuple[Parameter, ...]
    groups: tuple[Repeats, ...]
    metrics: tuple[Metric, ...]

    @property
    def worlds(self) -> list[str]:
        return [run.world for run in self.comparison.runs]

    def parameter(self, path: str) -> Parameter | None:
        return next((one for one in self.parameters if one.path == path), None)


def view_of(compared: Compared, chosen: Chosen) -> tuple[RunsView, list[str]]:
    """The view with everything that was not chosen, and a sentence for each choice that these runs do not
    have.
    """
    problems: list[str] = []

    def known(what: str, name: str | None, names: Sequence[str], missing: str) -> str | None:
        if name is None or name in names:
            return name
        problems.append(f"The address asks for {name[:80]} {what}, {missing}: something else is shown.")
        return None

    paths = [one.path for one in compared.parameters]
    metrics = [one.name for one in compared.metrics]
    same = "in which these runs do not differ"
    lacking = "which no two of these runs have"
    metric = known("as the value", chosen.metric, metrics, lacking) or metrics[0]
    x = known("on the x axis", chosen.x, [RUN, *paths], same) or usual_x(compared)
    series = known("as the colour", chosen.series, [NONE, *paths], same)
    if series is None or (series == x and series != NONE):
        series = usual_series(compared, x)
    along = compared.parameter(x)
    positive = along is not None and all_positive(along)
    if chosen.log_x and not positive:
        why = f"{along.title} has others" if along else "not single runs"
        problems.append(
            "The address asks for a logarithmic x axis, which needs numbers above 0 "
            f"and {why}: the axis is not logarithmic."
        )
    usual: Kind = "lines" if along and along.is_numeric else "bars"
    log_x = spans_decades(along) if chosen.log_x is None and along else bool(chosen.log_x)
    view = RunsView(
        metric=metric,
        x=x,
        series=series,
        kind="boxes" if metric == TOKENS else chosen.kind or usual,
        log_x=positive and log_x,
        log_y=chosen.log_y,
    )
    return view, problems


def all_positive(parameter: Parameter) -> bool:
    return parameter.is_numeric and all(value > 0 for value in parameter.values)


def spans_decades(parameter: Parameter) -> bool:
    """Whether the values are positive numbers of which the largest is at least ten times the least."""
    return all_positive(parameter) and max(parameter.values) >= 10 * min(parameter.values)


def usual_x(compared: Compared) -> str:
    """A numeric parameter if one was varied, else a categorical one, but the strategy only if nothing else
    was.
    """
    strategy = compared.parameter("strategy")
    free = [
        one
        for one in compared.parameters
        if one is not strategy and not one.is_nested and not (strategy and _follows(one, strategy))
    ]
    numeric = [one for one in free if one.is_numeric and _is_varied(one, free)]
    most = max(numeric, key=lambda one: len(set(map(key_of, one.values))), default=None)
    found = most or next(iter(free), None) or strategy
    return found.path if found else RUN


def usual_series(compared: Compared, x: str) -> str:
    """The strategy if it differs, else what keeps most runs apart that are no repeats and have the same x."""
    others = [one for one in compared.parameters if one.path != x]
    if any(one.path == "strategy" for one in others):
        return "strategy"
    if x == RUN:
        return NONE
    along = [one for one in compared.parameters if one.path == x]
    found = telling(compared.worlds, compared.groups, others, along)
    return found[0].path if found else NONE


def _follows(one: Parameter, strategy: Parameter) -> bool:
    """Whether runs of one strategy never differ in it: it says no more than the strategy."""
    strategies = list(map(key_of, strategy.values))
    pairs = set(zip(strategies, map(key_of, one.values), strict=True))
    return len(pairs) == len(set(strategies))


def _is_varied(one: Parameter, parameters: Sequence[Parameter]) -> bool:
    """A number of a model or a cluster was varied by itself if nothing else of that differs but its name:
    otherwise these are different models or clusters.
    """
    root = one.path.partition(".")[0]
    if root not in ("model", "cluster"):
        return True
    own = [p for p in parameters if p.path.startswith(f"{root}.") and p.path != f"{root}.name"]
    return len(own) == 1
