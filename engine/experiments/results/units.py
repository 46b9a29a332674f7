"""Multiples of units: published values and limits of claims in the units that papers print."""

from __future__ import annotations

from engine.domain.errors import SpecError
from engine.domain.quantity import Quantity
from engine.experiments.results.metrics import metric

MULTIPLES: dict[str, dict[str, float]] = {
    "s": {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0},
    "1/s": {"1/s": 1, "tokens/s": 1, "token/s": 1, "requests/s": 1},
    "B": {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "bit/s": {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Mbps": 1e6, "Gbps": 1e9},
    "B/s": {"B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9},
    "FLOP": {"FLOP": 1, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12},
    "FLOP/s": {"FLOP/s": 1, "GFLOP/s": 1e9, "TFLOP/s": 1e12},
    "J": {"J": 1, "kJ": 1e3, "mJ": 1e-3, "µJ": 1e-6, "uJ": 1e-6, "Wh": 3600.0},
    "J s": {"J s": 1, "mJ s": 1e-3},
    "W": {"W": 1, "mW": 1e-3, "kW": 1e3},
    "nat": {"nat": 1},
    "fraction": {"fraction": 1, "%": 1e-2, "x": 1, "": 1},
    "": {"": 1, "x": 1, "%": 1e-2, "count": 1},
}
"""Unit → the units that can be given instead, and how many of it one of them is."""


def in_unit(value: float, given: str, unit: str) -> float:
    """`in_unit(812, "ms", "s")` → 0.812. An empty `given` is the unit itself. Raises `SpecError` for one of
    another kind; the sentence names those that fit.
    """
    known = MULTIPLES.get(unit, {unit: 1})
    if given == "":
        return value
    if given not in known:
        raise SpecError(
            f"the unit {given} does not fit a value in {unit or 'no unit'}: use one of "
            f"{', '.join(one for one in known if one) or 'none'}."
        )
    return value * known[given]


def unit_of_quantity(quantity: Quantity) -> str:
    """The unit of a quantity: its metric's, none for a relation to a baseline; a reduction is a fraction."""
    if quantity.relation == "value":
        return metric(quantity.metric).unit
    return "fraction" if quantity.relation == "reduction" else ""


def title_of_quantity(quantity: Quantity) -> str:
    """What axes and tables call it, without its unit."""
    title = metric(quantity.metric).title
    if quantity.relation == "value":
        return title
    base = ", ".join(str(value) for value in quantity.relative_to.values()) or "itself"
    words = {"ratio": "relative to", "speedup": "speed-up over", "reduction": "reduction against"}
    return f"{title}: {words[quantity.relation]} {base}"


def better_of(quantity: Quantity) -> str | None:
    """ "lower" or "higher"; None where neither is better. Less of a metric is more of a speed-up over it."""
    better = metric(quantity.metric).better
    if better is None or quantity.relation in ("value", "ratio"):
        return better
    return "higher" if better == "lower" else "lower"
