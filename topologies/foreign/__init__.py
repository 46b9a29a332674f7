"""Drawings of other programs: MiniEdit (`.mn`), GraphML and GML, read as clusters.

These formats know no device rates. A node is a device like `preset` unless its attributes say more, and a
link without a rate gets `Defaults.bit_per_s`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from engine.domain.errors import SpecError
from topologies.drawn import Drawn, refusal
from topologies.foreign.build import Defaults, Graph, drawing_of
from topologies.foreign.graphs import read_gml, read_graphml
from topologies.foreign.miniedit import read_miniedit
from topologies.foreign.others import known_as

Kind = Literal["mn", "graphml", "gml"]
KINDS: tuple[Kind, ...] = ("mn", "graphml", "gml")

_READERS: dict[Kind, Callable[[str, str], Graph]] = {
    "mn": read_miniedit,
    "graphml": read_graphml,
    "gml": read_gml,
}

__all__ = ["KINDS", "Defaults", "Kind", "kind_of", "parse"]


def kind_of(filename: str) -> Kind | None:
    """The format that the end of a file's name says; None for any other."""
    return next((kind for kind in KINDS if filename.lower().endswith(f".{kind}")), None)


def parse(text: str, kind: Kind, where: str, defaults: Defaults | None = None) -> Drawn:
    """The drawing in `text`, of which the caller limits the length. Errors (`SpecError`) call it `where`."""
    try:
        graph = _READERS[kind](text, where)
    except SpecError as error:
        if said := known_as(text):
            raise refusal(where, said) from error
        raise
    return drawing_of(graph, where, defaults or Defaults())
