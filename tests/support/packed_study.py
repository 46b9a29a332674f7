"""A small study: its experiment with predicted results, its files, and the archive of them."""

from __future__ import annotations

import io
from functools import cache

import topologies
from engine.domain.experiment import Experiment
from engine.experiments.design.expand import expand
from engine.experiments.design.sources import Sources
from engine.experiments.execution.point import carry_out
from engine.experiments.results.rows import rows
from engine.experiments.results.versions import Versions
from engine.experiments.studies.archive import Limits, read_archive, write_archive
from engine.experiments.studies.contents import About, Carried, Clusters, contents_of

CLUSTERS = Clusters(topologies.load, topologies.dump_toml)
ABOUT = About("2026-11-20", {"edgeloom": "1.2.3", "kernel": "6.1"}, licence="https://example.org/licence")
Files = dict[str, bytes]


@cache
def carried() -> Carried:
    experiment = Experiment.parse(
        {
            "name": "two",
            "title": "Two methods",
            "base": {
                "cluster": "lab-3",
                "model": "demo-lm",
                "workload": {"prompt_tokens": 4, "new_tokens": 2},
            },
            "factors": [{"name": "method", "path": "strategy", "values": ["single", "megatron"]}],
            "tables": [{"name": "times", "rows": ["method"]}],
            "figures": [{"name": "times", "kind": "bars", "x": "method"}],
        },
        "two",
    )
    points = expand(experiment, Sources(topologies.load, topologies.preset))
    results = {
        (one.digest, "predicted"): carry_out(one.spec, one.digest, "predicted") for one in points if one.spec
    }
    return Carried(experiment, points, rows(points, ("predicted",), results, Versions()))


@cache
def packed() -> Files:
    return contents_of([carried()], ABOUT, CLUSTERS)[1]


def archive_of(files: Files) -> io.BytesIO:
    made = io.BytesIO()
    write_archive(files, made)
    return made


def read(archive: io.BytesIO, limits: Limits = Limits()) -> Files:  # noqa: B008
    """Its files, by name."""
    found: Files = {}

    def take(name: str, block: bytes) -> None:
        found[name] = found.get(name, b"") + block

    read_archive(archive, "study.zip", take, limits)
    return found
