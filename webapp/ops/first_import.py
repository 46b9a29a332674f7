"""Imports what server, workers and emulations import, so that Python compiles it once, during set-up.

`python -m webapp.ops.first_import`: else each of the processes that start at the same time would compile it
for itself, and every emulation again, since it may not write where the packages are, while a person waits
for the first token. pip would compile all packages, of which nine tenths are never imported.
"""

from __future__ import annotations

from importlib import import_module

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


if __name__ == "__main__":
    main()
