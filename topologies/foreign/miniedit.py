"""MiniEdit's drawings, as examples/miniedit.py of Mininet 2.3 saves them: JSON of hosts, switches, links."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from topologies.drawn import refusal
from topologies.foreign.build import Edge, Graph, Node

NOT_READ = {
    "stations": "Wi-Fi stations, to be drawn as devices with links of the rate that the air has",
    "aps": "Wi-Fi access points, to be drawn as switches",
    "controllers": "controllers",
}
HOST_OPTIONS = ("cpu", "cores")
LINK_OPTIONS = ("max_queue_size", "speedup")

TIMES = {"us": 1e-6, "usec": 1e-6, "usecs": 1e-6, "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3} | dict.fromkeys(
    ("s", "sec", "secs"), 1.0
)
TIME = re.compile(r"^\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*$")


def read_miniedit(text: str, where: str) -> Graph:
    """The cluster in a file of MiniEdit: hosts become devices, switches and routers become switches. What
    else there is is named as left out: controllers, what the air joins, and options that no cluster has.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refusal(where, "no valid MiniEdit drawing: it is not JSON") from error
    if not isinstance(data, dict) or not isinstance(data.get("hosts"), list):
        raise refusal(where, "no MiniEdit drawing: expected an object with hosts, switches and links")
    nodes = [*_nodes(data, "hosts", where), *_nodes(data, "switches", where)]
    twice = [name for name, count in Counter(node.name for node in nodes).items() if count > 1]
    if twice:
        raise refusal(where, f"{twice[0][:40]} is the hostname of two nodes: give one of them another")
    links = _rows(data.get("links", []), f"{where}, links")
    missing = {name for table in NOT_READ for name in _hostnames(data.get(table))}
    wired = [link for link in links if not {link.get("src"), link.get("dest")} & missing]
    edges = [_edge(link, f"{where}, links[{index}]") for index, link in enumerate(wired)]
    return Graph("", tuple(nodes), tuple(edges), tuple(_left_out(data, links, len(links) - len(wired))))


def _hostnames(rows: Any) -> list[str]:
    """The names of the nodes in a table that is not read."""
    found = [row["opts"] for row in rows or () if isinstance(row, dict) and isinstance(row.get("opts"), dict)]
    return [str(opts["hostname"]) for opts in found if opts.get("hostname")]


def _left_out(data: dict[str, Any], links: list[dict[str, Any]], unread: int) -> Iterator[str]:
    for table, what in NOT_READ.items():
        if isinstance(rows := data.get(table), list) and rows:
            named = ", ".join(_hostnames(rows))
            yield f"{len(rows)} {what} ({named[:100]})" if named else f"{len(rows)} {what}"
    if unread:
        yield f"{unread} links of these"
    for rows, options, what in ((data["hosts"], HOST_OPTIONS, "hosts"), (links, LINK_OPTIONS, "links")):
        stated = [row["opts"] for row in rows if isinstance(row.get("opts"), dict)]
        for option in options:
            count = sum(opts.get(option) not in (None, "", 0) for opts in stated)
            if count:
                yield f"{option} of {count} {what}"


def seconds_of(value: Any, where: str) -> float:
    """`5ms` → 0.005; a number alone counts microseconds, as tc takes it. Raises `SpecError`."""
    found = TIME.match(str(value))
    if found is None or (found[2] or "us") not in TIMES:
        raise refusal(where, f"expected a time such as 5ms, got {str(value)[:40]}")
    return float(found[1]) * TIMES[found[2] or "us"]


def number_of(value: Any, where: str) -> float:
    """`value` as a number. Raises `SpecError` unless it is one, or text of one."""
    try:
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(number)
        return number
    except (TypeError, ValueError, OverflowError) as error:
        raise refusal(where, f"expected a number, got {str(value)[:40]}") from error


def link_options(opts: dict[str, Any], where: str) -> dict[str, Any]:
    """Mininet's options of a link: `bw` in Mbit/s, `delay` and `jitter` as times, `loss` in percent."""
    fields: dict[str, Any] = {}
    if opts.get("bw") not in (None, ""):
        fields["bit_per_s"] = number_of(opts["bw"], f"{where}.bw") * 1e6
    for name in ("delay", "jitter"):
        if opts.get(name) not in (None, ""):
            fields[f"{name}_s"] = seconds_of(opts[name], f"{where}.{name}")
    if opts.get("loss") not in (None, ""):
        fields["loss_frac"] = number_of(opts["loss"], f"{where}.loss") / 100
    return fields


def _nodes(data: dict[str, Any], table: str, where: str) -> Iterator[Node]:
    for index, row in enumerate(_rows(data.get(table, []), f"{where}, {table}")):
        place = f"{where}, {table}[{index}]"
        opts = row["opts"] if isinstance(row.get("opts"), dict) else {}
        name = str(opts.get("hostname") or f"{table[0]}{row.get('number', index + 1)}")
        at = None
        if "x" in row and "y" in row:
            at = (number_of(row["x"], f"{place}.x"), number_of(row["y"], f"{place}.y"))
        yield Node(name, name, table == "switches", {}, at)


def _edge(row: dict[str, Any], where: str) -> Edge:
    opts = row.get("opts")
    fields = link_options(opts, where) if isinstance(opts, dict) else {}
    return Edge(str(row.get("src", "")), str(row.get("dest", "")), fields)


def _rows(value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise refusal(where, "expected a list of objects")
    return value
