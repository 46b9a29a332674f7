"""Clusters: their values, the ready ones by name, device presets, shapes, and cluster files."""

from __future__ import annotations

import edgeloom.own_packages  # noqa: F401
from engine.domain.cluster import ClusterSpec, DeviceSpec, SwitchSpec
from engine.domain.links import LinkSpec
from topologies.files import dump_toml, load, names, parse_toml
from topologies.presets import DevicePreset, preset, presets
from topologies.shapes import copies, mesh, ring, star, tree

__all__ = [
    "ClusterSpec",
    "DevicePreset",
    "DeviceSpec",
    "LinkSpec",
    "SwitchSpec",
    "copies",
    "dump_toml",
    "load",
    "mesh",
    "names",
    "parse_toml",
    "preset",
    "presets",
    "ring",
    "star",
    "tree",
]
