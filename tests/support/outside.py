"""Methods from outside for tests: a file with one, and what Python takes for an installed package."""

from __future__ import annotations

from pathlib import Path

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


def install(folder: Path, entry: str = "thirds = thirds:Thirds", package: str = "two-thirds") -> None:
    """What pip writes beside a module: with `folder` on Python's path the package counts as installed."""
    about = folder / f"{package.replace('-', '_')}-0.3.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.3\n")
    (about / "entry_points.txt").write_text(f"[edgeloom.methods]\n{entry}\n")
