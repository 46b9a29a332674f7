"""Draws a cluster: one to six unequal devices, joined in any shape, with ample or scarce memory."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import exp, log
from random import Random
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.ops.sizes import model_bytes

MAX_DEVICES = 6
AMPLE_BYTES = 4e8
SLOWEST_FLOP_PER_S, FASTEST_FLOP_PER_S = 1e9, 1e11
SLOWEST_BIT_PER_S, FASTEST_BIT_PER_S = 1e6, 1e9
LONGEST_DELAY_S = 5e-3
Ends = list[tuple[str, str]]


def draw_cluster(random: Random, model: ModelSpec, max_devices: int = MAX_DEVICES) -> ClusterSpec:
    """Draw a cluster. In half of them the workers have memory for a part of `model` each, so that plans are
    refused, stream weights or recompute keys and values.
    """
    count = random.randint(1, max_devices)
    scarce = random.random() < 0.5
    devices = [_device(random, f"d{index}", model, scarce) for index in range(count)]
    if random.random() < 0.3:
        terminal = {"name": "term", "role": "terminal", "memory_bytes": AMPLE_BYTES}
        devices.append(devices[0] | terminal)
    names = [device["name"] for device in devices]
    switches, ends = _shape(random, names)
    return ClusterSpec(
        name="drawn",
        source="term" if "term" in names else random.choice(names),
        devices=devices,
        switches=[{"name": name} for name in switches],
        links=[_link(random, a, b) for a, b in ends],
    )


def _device(random: Random, name: str, model: ModelSpec, scarce: bool) -> dict[str, Any]:
    rate = log_uniform(random, SLOWEST_FLOP_PER_S, FASTEST_FLOP_PER_S)
    bytes_ = model_bytes(model) * log_uniform(random, 0.15, 3.0) if scarce else AMPLE_BYTES
    found: dict[str, Any] = {
        "name": name,
        "flop_per_s": rate,
        "memory_byte_per_s": rate * log_uniform(random, 0.1, 10.0),
        "memory_bytes": float(round(bytes_)),
        "disk_byte_per_s": log_uniform(random, 1e7, 1e9),
        "half_rows": random.choice((0.0, 24.0)),
        "compute_model": random.choice(("roofline", "roofline", "serial", "flops")),
    }
    if random.random() < 0.2:
        found["staging_byte_per_s"] = log_uniform(random, 1e8, 1e10)
    if random.random() < 0.2:
        found["on_chip_weight_bytes"] = float(round(bytes_ * random.uniform(0.05, 1.0)))
    return found


def _shape(random: Random, names: list[str]) -> tuple[list[str], Ends]:
    """Draw the switches, and the pairs that links join."""
    match random.choice(("star", "row", "ring", "mesh", "tree", "two switches")):
        case "row":
            return [], list(pairwise(names))
        case "ring" if len(names) > 2:
            return [], [*pairwise(names), (names[-1], names[0])]
        case "mesh":
            return [], list(combinations(names, 2))
        case "tree":
            return [], [(names[index], random.choice(names[:index])) for index in range(1, len(names))]
        case "two switches":
            return ["s1", "s2"], [("s1", "s2"), *((random.choice(("s1", "s2")), name) for name in names)]
        case _:
            return ["s1"], [("s1", name) for name in names]


def _link(random: Random, a: str, b: str) -> dict[str, Any]:
    rate = log_uniform(random, SLOWEST_BIT_PER_S, FASTEST_BIT_PER_S)
    found: dict[str, Any] = {"a": a, "b": b, "bit_per_s": rate}
    if random.random() < 0.2:
        found["reverse_bit_per_s"] = log_uniform(random, SLOWEST_BIT_PER_S, FASTEST_BIT_PER_S)
    if random.random() < 0.3:
        found["delay_s"] = random.uniform(0.0, LONGEST_DELAY_S)
    return found


def log_uniform(random: Random, low: float, high: float) -> float:
    return exp(random.uniform(log(low), log(high)))
