"""Device presets, ready clusters and shapes: data and pure functions over `engine.domain.cluster`."""

from topologies import shapes
from topologies.drawn import Drawn
from topologies.files import (
    dump_drawing,
    dump_toml,
    load,
    load_file,
    names,
    paper_names,
    parse_drawing,
    parse_toml,
)
from topologies.presets import DevicePreset, preset, presets

__all__ = [
    "DevicePreset",
    "Drawn",
    "dump_drawing",
    "dump_toml",
    "load",
    "load_file",
    "names",
    "paper_names",
    "parse_drawing",
    "parse_toml",
    "preset",
    "presets",
    "shapes",
]
