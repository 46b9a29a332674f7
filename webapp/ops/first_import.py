"""Imports what server, workers and emulations import, so that Python compiles it once, during set-up.

`python -m webapp.ops.first_import`: else each of the processes that start at the same time would compile it
for itself, and every emulation again, since it may not write where the packages are, while a person waits
for the first token. pip would compile all packages, of which nine tenths are never imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from engine.models.families.registry import FAMILIES

LIBRARY = import_module("transformers.models.auto.configuration_auto")
REFERENCES = tuple(LIBRARY.model_type_to_module_name(family.name) for family in FAMILIES)
"""The library's modules that compute the reference outputs."""

PROGRAMS = (
    "webapp.http.server",
    "webapp.asgi",
    "celery.apps.worker",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "webapp.urls",
    "webapp.runs.tasks",
    "webapp.clusters.tasks",
    "webapp.experiments.tasks",
    "webapp.advice.tasks",
    "emulator.session.server",
    "emulator.network.mininet_network",
    "engine.runs.execute",
    "engine.worlds.real.device_process",
    "engine.worlds.real.native",
    "numpy.random",
    "safetensors.torch",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    *sorted({f"transformers.models.{name}.modeling_{name}" for name in REFERENCES}),
)


def main() -> None:
    for name in PROGRAMS:
        import_module(name)
    open_compiled(list(sys.modules.values()))


def open_compiled(modules: Iterable[ModuleType]) -> None:
    """Let read what is compiled whoever may read the code itself: the server's settings have closed what this
    process makes, and emulations that root starts run without its rights.
    """
    for module in modules:
        source, cached = (getattr(module, name, None) for name in ("__file__", "__cached__"))
        if not source or not cached or not Path(source).is_file() or not Path(cached).is_file():
            continue
        for made, of in ((Path(cached), Path(source)), (Path(cached).parent, Path(source).parent)):
            if made.stat().st_uid == os.geteuid():
                made.chmod(made.stat().st_mode | of.stat().st_mode & 0o777)


if __name__ == "__main__":
    main()
