"""Figures of your own: a name, a unit and a function of a report, or of a report and the trace of its run.

```python
from edgeloom.metric import of_run, of_trace

worst_gap_s = of_run(
    "worst_gap_s", "Longest wait for a token", "s", "lower",
    lambda report: max(b - a for one in report.requests for a, b in zip(one.token_s, one.token_s[1:])),
)
```

An entry point of the group `edgeloom.metrics`, called as the figure is, makes it one among the others.
"""

from __future__ import annotations

import edgeloom.own_packages  # noqa: F401
from engine.domain.report import RunReport
from engine.reports.metric import Metric, of_run, of_trace

__all__ = ["Metric", "RunReport", "of_run", "of_trace"]
