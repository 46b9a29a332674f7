"""Methods from outside for tests: a file with one, and what Python takes for an installed package."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine.plugins.installed import VARIABLES
from engine.strategies import registry
from tests.devtools.rooms import ROOT
from tests.support import warm_start

THIRDS = '''"""The first worker has a share of the layers, the last worker the others."""

from __future__ import annotations

from pydantic import Field

from edgeloom.method import ClusterSpec, ModelSpec, Params, PlacesLayers, Plan, Workload


class ThirdsParams(Params):
    share: float = Field(default=0.34, gt=0, lt=1, description="Share of the layers on the first worker.")


class Thirds(PlacesLayers[ThirdsParams]):
    name = "thirds"
    title = "A third first"
    summary = "The first worker has a third of the layers, the last one two thirds."
    Params = ThirdsParams

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: ThirdsParams) -> Plan:
        first, last = cluster.workers[0], cluster.workers[-1]
        if first == last:
            return self.placed(cluster, model, workload, [(first, model.num_layers)])
        cut = max(1, round(params.share * model.num_layers))
        return self.placed(cluster, model, workload, [(first, cut), (last, model.num_layers - cut)])
'''
"""A method of 15 lines: it only places layers."""


def write_method(folder: Path, text: str = THIRDS, module: str = "thirds") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{module}.py"
    file.write_text(text, encoding="utf-8")
    return file


def install(
    folder: Path,
    entry: str = "thirds = thirds:Thirds",
    package: str = "two-thirds",
    group: str = "edgeloom.methods",
) -> None:
    """What pip writes beside a module: with `folder` on Python's path the package counts as installed."""
    about = folder / f"{package.replace('-', '_')}-0.3.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.3\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


def edgeloom(folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """The command in `folder`, with `path` and the checkout on Python's path."""
    with tempfile.TemporaryDirectory() as said:
        status = warm_start.run(words, folder, path, _environment(path), Path(said))
        out, err = ((Path(said) / name).read_text(encoding="utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess(words, status, out, err)


def _environment(path: str) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    return environment | {
        "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT)))),
        "OMP_NUM_THREADS": "1",
    }


def keep_methods_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods that a test adds to this process are gone after it, and the module of one before it is not
    found again.
    """
    sys.modules.pop("thirds", None)
    monkeypatch.setattr(registry, "_BY_NAME", dict(registry._BY_NAME))
    monkeypatch.setattr(registry, "_OUTSIDE", dict(registry._OUTSIDE))
