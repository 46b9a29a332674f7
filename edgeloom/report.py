"""A report in Python and notebooks: its figures by name, a line of a table, a picture of its tokens."""

from __future__ import annotations

import math
from io import StringIO
from typing import TYPE_CHECKING

import edgeloom.own_packages  # noqa: F401
from engine.domain.extras import naming_extras
from engine.domain.report import RunReport
from engine.experiments.results.metrics import metric, metrics_of
from engine.reports.compare import flatten
from engine.reports.metrics import metrics_of_a, values_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["Report"]

COLUMNS = 100
"""Characters of a line in a notebook."""


class Report(RunReport):
    """The report of a run. Its figures are there by the names of `edgeloom list metrics`, in SI units:
    `report["token_p95_s"]`, `report["busy_s[pi-1]"]` of a device, `report["bytes[pi-1--pi-2]"]` of a link's
    direction, `report["ttft_s[0]"]` of a request.
    """

    def __getitem__(self, name: str) -> float:
        """A figure; NaN where the report does not have it. Raises `SpecError` for an unknown name."""
        found = figures_of(self)
        if name not in found:
            metric(name)
        return found.get(name, math.nan)

    @naming_extras()
    def to_frame(self) -> pandas.DataFrame:
        """One line: cluster, model, method and its parameters, outcome, then every figure in SI units. Lines
        of several reports go together with `pandas.concat`.
        """
        import pandas

        about = {
            "cluster": self.spec.cluster.name,
            "model": self.spec.model.name,
            "method": self.spec.strategy,
            **flatten(self.spec.params, "params"),
            "seed": self.spec.seed,
            "world": self.world,
            "outcome": self.outcome.kind,
        }
        return pandas.DataFrame([{**about, **metrics_of(self)}])

    @naming_extras()
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how many tokens each request has at which time, into `ax` or a new figure."""
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.figure().subplots()
        for request in self.requests:
            times = [request.arrival_s + token_s for token_s in request.token_s]
            steps = [request.arrival_s, *times], range(len(times) + 1)
            ax.step(*steps, where="post", label=f"request {request.index}")
        ax.set_xlabel("time (s)")
        ax.set_ylabel("tokens")
        ax.set_title(f"{self.spec.strategy}, {self.spec.model.name} on {self.spec.cluster.name}")
        return ax

    def _repr_html_(self) -> str:
        """What the command line shows of it."""
        from rich.console import Console

        from engine.cli.tables import report_group

        console = Console(record=True, width=COLUMNS, file=StringIO(), force_jupyter=False)
        console.print(report_group(self))
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")

    def _ipython_key_completions_(self) -> list[str]:
        return list(figures_of(self))


def figures_of(report: RunReport) -> dict[str, float]:
    """All figures that a report has, by name."""
    found = metrics_of(report)
    for request in report.requests:
        values = values_of(request, metrics_of_a("request"))
        found |= {f"{name}[{request.index}]": value for name, value in values.items()}
    return found


def shown(report: RunReport) -> Report:
    """The same report with figures by name."""
    return Report.model_construct(report.model_fields_set, **dict(report))
