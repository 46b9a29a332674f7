"""Showcases as data: the start page's run, reasons to distribute, and what the papers' methods are for.

A file has the table `[run]` and, for every run beside it, a table `[[other]]` with the keys in which it
differs. Keys of a run are those of `RunSpec`, but `cluster` is the name of a cluster in `topologies`, `model`
one of the catalogue, `bit_per_s` sets the rate of all links, and only the devices in `only` compute.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.showcase import Showcase
from engine.models import catalogue
from topologies import files

FOLDER = Path(__file__).parent
ORDER = (
    "answer",
    "together",
    "too-large",
    "faster",
    "adaptlink",
    "lime",
    "edgeformer",
    "voltage",
    "experts",
    "mcu",
    "mcu-64",
)
"""The showcases in the order in which they are offered."""


def showcases() -> tuple[Showcase, ...]:
    """The showcases whose models are on this machine; raises `SpecError` if a file is wrong."""
    absent = to_fetch()
    return tuple(showcase(name) for name in ORDER if _model_of(name) not in absent)


def to_fetch() -> tuple[str, ...]:
    """The models of showcases that are not on this machine, and can be fetched."""
    here, shown = catalogue.names(), {_model_of(name) for name in ORDER}
    return tuple(name for name in catalogue.packaged_names() if name in shown and name not in here)


@lru_cache(maxsize=len(ORDER))
def _model_of(name: str) -> str:
    return str(tomllib.loads(_text(name))["run"]["model"])


def _text(name: str) -> str:
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


@lru_cache(maxsize=len(ORDER))  # no error is kept: a model that was missing may have been fetched since
def showcase(name: str) -> Showcase:
    """The showcase of this name. Raises `SpecError`, which names the known ones, or says how to fetch its
    model.
    """
    if name in ORDER:
        return parse(_text(name), name)
    known = ", ".join(ORDER)
    raise SpecError(f"no showcase {name}: there are {known}.", [("showcase", f"unknown: {name}")])


def parse(text: str, name: str) -> Showcase:
    """The showcase `name` in the text of its file. Raises `SpecError` with the file and the field."""
    where = f"{name}.toml"
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{where}: no valid TOML: {error}.") from error
    run, others, claims = data.pop("run", {}), data.pop("other", []), data.pop("claim", [])
    parsed: Showcase = Showcase.parse(
        {
            **data,
            "name": name,
            "spec": _spec(run, f"{where}, run"),
            "others": [_other(run, row, f"{where}, other[{i}]") for i, row in enumerate(others)],
            "claims": claims,
        },
        where,
    )
    return parsed


def _other(run: dict[str, Any], row: dict[str, Any], where: str) -> dict[str, Any]:
    """The spec of another run. Another strategy has its own parameters: those of the showcase's run do not
    hold for it.
    """
    own = {key: value for key, value in row.items() if key not in ("name", "title")}
    base = {key: value for key, value in run.items() if not ("strategy" in own and key == "params")}
    return {"name": row.get("name"), "title": row.get("title"), "spec": _spec(base | own, where)}


def _spec(row: dict[str, Any], where: str) -> dict[str, Any]:
    row = dict(row)
    for key in ("cluster", "model"):
        if key not in row:
            raise SpecError(f"{where}.{key}: missing: name one that comes with EdgeLoom.")
    cluster = _at_rate(files.load(str(row.pop("cluster"))), row.pop("bit_per_s", None))
    only = row.pop("only", None)
    if only is not None:
        kept = {cluster.rank(name) for name in only}
        cluster = cluster.without(rank for rank in cluster.workers if rank not in kept)
    model, weights = catalogue.resolve(str(row.pop("model")), row.pop("weights", None))
    return {"cluster": cluster, "model": model, "weights": weights, **row}


def _at_rate(cluster: ClusterSpec, bit_per_s: float | None) -> ClusterSpec:
    if bit_per_s is None:
        return cluster
    rate = {"bit_per_s": bit_per_s, "reverse_bit_per_s": None}
    return cluster.model_copy(update={"links": tuple(link.model_copy(update=rate) for link in cluster.links)})
