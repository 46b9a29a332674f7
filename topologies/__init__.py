"""Device presets, ready clusters and shapes: data and pure functions over `engine.domain.cluster`."""

from topologies import shapes
from topologies.files import dump_toml, load, load_file, names, paper_names, parse_toml
from topologies.presets import DevicePreset, preset, presets

__all__ = [
    "DevicePreset",
    "dump_toml",
    "load",
    "load_file",
    "names",
    "paper_names",
    "parse_toml",
    "preset",
    "presets",
    "shapes",
]
