"""Formats of other programs that are known by name and not read: the refusal says what to give instead."""

from __future__ import annotations

import json
import re
from typing import Any

READ = "a cluster file (TOML, YAML, JSON), MiniEdit's .mn, GraphML, GML or containerlab's YAML"
AS_GRAPH = "write it as GraphML or GML (networkx.write_graphml)"
_BY_KEYS: tuple[tuple[str, frozenset[str], str], ...] = (
    ("a project of GNS3", frozenset({"project_id", "topology"}), f"draw its nodes and links, or {AS_GRAPH}"),
    ("a project of GNS3", frozenset({"auto_close", "topology"}), f"draw its nodes and links, or {AS_GRAPH}"),
    ("node-link JSON of NetworkX", frozenset({"directed", "multigraph", "nodes"}), AS_GRAPH),
    ("the /state of exo", frozenset({"topology", "instances"}), "draw its nodes; device import reads rates"),
    ("the /state of exo", frozenset({"topology", "nodeProfiles"}), "draw its nodes"),
    ("a cluster of LLMServingSim", frozenset({"num_nodes", "nodes"}), "state its devices as [[device]]"),
    ("a topology of netlab", frozenset({"provider", "nodes"}), f"netlab create -o graph, then {AS_GRAPH}"),
    ("a topology of netlab", frozenset({"nodes", "links"}), f"netlab create -o graph, then {AS_GRAPH}"),
    ("a file of Fogify or Docker Compose", frozenset({"services"}), "state its nodes as [[device]]"),
    (
        "the output of iperf3 --json",
        frozenset({"start", "intervals", "end"}),
        "--scenario FILE@LINK plays it",
    ),
)
_BY_TEXT: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("a scenario of CORE", re.compile(r"\s*(<\?xml[^>]*>\s*)?<scenario\b"), f"draw it, or {AS_GRAPH}"),
    ("a graph in DOT", re.compile(r"\s*(//.*\n\s*)*(strict\s+)?(di)?graph\b[^\n{]*\{"), AS_GRAPH),
    (
        "a lab of Kathará",
        re.compile(r"(?m)^\s*[\w-]+\[\d+\]\s*=\s*\"?[\w/:]+\"?\s*$"),
        f"draw it, or {AS_GRAPH}",
    ),
)


def known_as(text: str, data: Any = None) -> str | None:
    """What a file is that is no cluster here, with what to give instead; None if nobody knows it."""
    if data is None and text.lstrip()[:1] in "{[":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
    if isinstance(data, list) and data and isinstance(data[0], dict) and {"kind", "dev"} <= data[0].keys():
        return _said("the output of tc -j qdisc", "give its rate, delay and loss to a link")
    if isinstance(data, dict):
        found = ((name, instead) for name, keys, instead in _BY_KEYS if keys <= data.keys())
        return next((_said(*each) for each in found), None)
    return next((_said(name, instead) for name, form, instead in _BY_TEXT if form.match(text)), None)


def _said(name: str, instead: str) -> str:
    return f"is {name}, which is no cluster here: {instead}; expected {READ}"
