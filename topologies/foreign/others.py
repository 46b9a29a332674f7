"""Formats of other programs that are known by name and not read: the refusal says what to give instead."""

from __future__ import annotations

import json
import re
from typing import Any

READ = "a cluster file (TOML, YAML, JSON), MiniEdit's .mn, GraphML, GML, containerlab's or netlab's YAML"
AS_GRAPH = "write it as GraphML or GML (networkx.write_graphml)"
DRAW = f"draw its nodes and links, or {AS_GRAPH}"
STATE = "state its nodes as [[device]]"
BENCH = "device import makes a [[device]] of it"
OF_A_LINK = "give its rate, delay and loss to a [[link]]"

_BY_KEYS: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"project_id", "topology"}), "a project of GNS3", DRAW),
    (frozenset({"auto_close", "topology"}), "a project of GNS3", DRAW),
    (frozenset({"directed", "multigraph", "nodes"}), "node-link JSON of NetworkX", AS_GRAPH),
    (frozenset({"topology", "instances"}), "the /state of exo", "draw its nodes; device import reads rates"),
    (frozenset({"topology", "nodeProfiles"}), "the /state of exo", "draw its nodes"),
    (frozenset({"num_nodes", "nodes"}), "a cluster of LLMServingSim", STATE),
    (frozenset({"lab", "nodes", "links"}), "a lab of Cisco Modeling Labs", DRAW),
    (frozenset({"available_node_types", "provider"}), "a cluster of Ray", STATE),
    (frozenset({"nodes", "links"}), "a graph of nodes and links", AS_GRAPH),
    (frozenset({"apiVersion", "kind"}), "an object of Kubernetes", STATE),
    (frozenset({"services"}), "a file of Fogify or Docker Compose", STATE),
    (
        frozenset({"start", "intervals", "end"}),
        "the output of iperf3 --json",
        "--scenario FILE@LINK plays it",
    ),
    (frozenset({"kind", "dev"}), "the output of tc -j qdisc", OF_A_LINK),
    (frozenset({"model_type", "avg_ts"}), "the output of llama-bench", BENCH),
)
"""By keys of an object, or of the first in a list. The first row that fits counts."""


def _root(element: str) -> str:
    """The beginning of an XML document with this root, behind its declaration and comments."""
    return rf"\A\ufeff?\s*(?s:(?>(?><\?.*?\?>|<!--.*?-->|<![A-Z].*?>)\s*)*+)<{element}"


_BY_TEXT: tuple[tuple[str, str, str], ...] = (
    (_root(r"scenario\b"), "a scenario of CORE", DRAW),
    (_root(r"lab\b"), "a lab of EVE-NG", DRAW),
    (_root(r"network\b[^>]*sndlib"), "a network of SNDlib", AS_GRAPH),
    (r"\A\ufeff?\s*\?SNDlib\b", "a network of SNDlib", AS_GRAPH),
    (_root(r"topology\b[^>]*VIRL"), "a lab of Cisco VIRL", DRAW),
    (_root(r"platform\b"), "a platform of SimGrid", DRAW),
    (_root(r"edge_devices\b"), "a device file of EdgeCloudSim or PureEdgeSim", STATE),
    (_root(r"gexf\b"), "GEXF of Gephi", AS_GRAPH),
    (_root(r"mxfile\b"), "a drawing of draw.io", "draw its nodes and links"),
    (r"^[ \t]*node \w+ \{[ \t\r]*$", "a network of IMUNES or of an old CORE", DRAW),
    (r"^[ \t]*(network|simple|module) \w+[^\n{;]*[ \t\r\n]*\{", "a network of OMNeT++", DRAW),
    (r"^[ \t]*(strict\s+)?(di)?graph\b[^\n{\[]*\{", "a graph in DOT", AS_GRAPH),
    (r"^[ \t]*[\w-]+\[\d+\][ \t]*=[ \t]*\"?[\w/:]+\"?[ \t\r]*$", "a lab of Kathará", DRAW),
    (
        r"^(from|import) (mininet|mn_wifi)\b",
        "a Python script of Mininet",
        "draw it in MiniEdit, or state it as TOML",
    ),
    (r"^(from|import) ns\b|^#include [\"<]ns3/", "a script of ns-3", DRAW),
    (r"^apiVersion: *\S", "an object of Kubernetes", STATE),
    (
        r"^\[ *ID\] Interval +Transfer",
        "what iperf prints",
        "--scenario FILE@LINK plays what iperf3 --json does",
    ),
    (r"^qdisc \w+ \w+: (dev|root|parent)\b", "the output of tc qdisc", OF_A_LINK),
    (r"^\| *model +\|.*\| *t/s *\|", "the output of llama-bench", BENCH),
    (r"\bmodel_type\b.*\bavg_ts\b", "the output of llama-bench", BENCH),
)
"""By what stands somewhere in a text that is no document: pattern, name, what to give instead."""


def known_as(text: str, data: Any = None) -> str | None:
    """What a file is that is no cluster here, with what to give instead; None if nobody knows it."""
    if data is None and text.lstrip()[:1] in "{[":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
    data = data[0] if isinstance(data, list) and data else data
    if isinstance(data, dict):
        found = ((name, instead) for keys, name, instead in _BY_KEYS if keys <= data.keys())
    else:
        found = ((name, instead) for form, name, instead in _BY_TEXT if re.search(form, text, re.MULTILINE))
    return next((f"is {name}, no cluster here: {instead}; expected {READ}" for name, instead in found), None)
