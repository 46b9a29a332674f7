"""A row of the table of figures (`engine/reports/metrics.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from engine.domain.report import DeviceReport, LinkReport, RequestReport, RunReport
from engine.domain.trace import Mark, Span
from engine.domain.values import Value

OfTrace = Callable[[RunReport, Sequence[Span | Mark]], float | None]
Better = Literal["lower", "higher"]
Subject = Literal["run", "device", "link", "request", "token"]
Place = Literal["report", "list", "usual"]
"""The place where a figure of a run is shown besides CSV, Compare and experiments, which have all of them.

report  among the first figures of a report, on the command line and in the browser
list    a column of the lists of runs for those who choose it; usual: for all
"""


class Metric(Value):
    """A figure: a number with its SI unit, of a run, a device, a direction of a link or a request.

    `better` is None where neither more nor less is better. `short` is its title where there is little space.
    `traced` computes it when a run ends, where the trace is needed; the report keeps it. `trust`: it says how
    far a run is to be trusted, so that runs that are not valid count, too. `shown` names the pages that have
    it besides tables, `about` says more of it there.
    """

    name: str
    title: str
    unit: str
    better: Better | None = None
    compute: SkipJsonSchema[Callable[[Any], float | bool | None]] = Field(exclude=True, repr=False)
    traced: SkipJsonSchema[OfTrace | None] = Field(default=None, exclude=True, repr=False)
    of: Subject = "run"
    shown: tuple[Place, ...] = ()
    short: str = ""
    about: str = ""
    trust: bool = False


def of_run(
    name: str,
    title: str,
    unit: str,
    better: Better | None,
    compute: Callable[[RunReport], float | bool | None],
    **more: Any,
) -> Metric:
    """A figure that `compute` works out of a run's report; `better` says whether less or more of it is.
    `more` are further fields of `Metric`.
    """
    return Metric(name=name, title=title, unit=unit, better=better, compute=compute, **more)


def of_trace(
    name: str, title: str, unit: str, better: Better | None, compute: OfTrace, **more: Any
) -> Metric:
    """A figure of a run that is more than its report has: `compute` works it out of the report and the trace,
    when the run ends. `better` and `more` as for `of_run`.
    """
    return Metric(
        name=name,
        title=title,
        unit=unit,
        better=better,
        compute=lambda report: report.figures.get(name),
        traced=compute,
        **more,
    )


def of_device(
    name: str, title: str, unit: str, better: Better | None, compute: Callable[[DeviceReport], float | None]
) -> Metric:
    return Metric(name=name, title=title, unit=unit, better=better, compute=compute, of="device")


def of_link(
    name: str, title: str, unit: str, better: Better | None, compute: Callable[[LinkReport], float | None]
) -> Metric:
    return Metric(name=name, title=title, unit=unit, better=better, compute=compute, of="link")


def of_token(
    name: str, title: str, unit: str, better: Better | None, compute: Callable[[float], float]
) -> Metric:
    return Metric(name=name, title=title, unit=unit, better=better, compute=compute, of="token")


def of_request(
    name: str, title: str, unit: str, better: Better | None, compute: Callable[[RequestReport], float | None]
) -> Metric:
    return Metric(name=name, title=title, unit=unit, better=better, compute=compute, of="request")
