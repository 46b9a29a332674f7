"""EdgeLoom from Python: runs and experiments in this process, methods of your own, and a client for a server.

```python
import edgeloom

report = edgeloom.predict("lab-3", "demo-lm", "voltage", prompt="The with statement")  # simulated
report = edgeloom.run("lab-3", "demo-lm", "voltage", prompt="The with statement")  # real processes
table = edgeloom.sweep({"cluster": "lab-3", "model": "demo-lm", "method": ["voltage", "gpipe"]})
client = edgeloom.Client("http://localhost:8000", token="loom_…")  # an API token of the account page
```

`edgeloom.method` has what a method needs, `edgeloom.testing` checks one, `edgeloom.metric` makes figures,
`edgeloom.cluster` has clusters and devices. What stands in the lists `__all__` of these modules stays as it
is until the next minor version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeloom.client import Client, Experiment, Refused, Run
    from edgeloom.here import compare, experiment, predict, run, spec
    from edgeloom.report import Report
    from edgeloom.sweeps import sweep

_MODULES = {
    "edgeloom.client": ("Client", "Experiment", "Refused", "Run"),
    "edgeloom.here": ("compare", "experiment", "predict", "run", "spec"),
    "edgeloom.report": ("Report",),
    "edgeloom.sweeps": ("sweep",),
}
"""A name is imported when it is first used: the client needs none of the engine."""

_PLACES = {name: module for module, names in _MODULES.items() for name in names}

_PACKAGES = ("cluster", "method", "metric", "testing")

__all__ = [
    "Client",
    "Experiment",
    "Refused",
    "Report",
    "Run",
    "compare",
    "experiment",
    "predict",
    "run",
    "spec",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from edgeloom.command_line import own_version

        return own_version()
    if name in _PACKAGES:
        return import_module(f"edgeloom.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'edgeloom' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found
