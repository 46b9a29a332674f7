"""Device presets, ready clusters and shapes: data and pure functions over `engine.domain.cluster`."""

from topologies import shapes
from topologies.drawn import Drawn
from topologies.files import (
    dump_drawing,
    dump_toml,
    load,
    load_drawing,
    names,
    paper_names,
    parse_drawing,
    parse_toml,
    read_drawing,
    write_drawing,
)
from topologies.formats import FORMATS, Format
from topologies.parts import DiskPreset, LinkPreset, disk_presets, link_presets
from topologies.presets import DevicePreset, preset, presets

__all__ = [
    "FORMATS",
    "DevicePreset",
    "DiskPreset",
    "Drawn",
    "Format",
    "LinkPreset",
    "disk_presets",
    "dump_drawing",
    "dump_toml",
    "link_presets",
    "load",
    "load_drawing",
    "names",
    "paper_names",
    "parse_drawing",
    "parse_toml",
    "preset",
    "presets",
    "read_drawing",
    "shapes",
    "write_drawing",
]
