"""Numbers as text for people: one multiple of a unit for a whole table, and as many digits as differ."""

from __future__ import annotations

import math
from collections.abc import Iterable

from engine.domain.units import human

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
SCALED = ("s", "B", "J", "J s", "FLOP", "bit/s", "B/s", "FLOP/s", "W")
"""Units that take a prefix; seconds only one below 1."""


def unit_and_factor(unit: str, values: Iterable[float | None]) -> tuple[str, float]:
    """The multiple in which `values` are easy to read, and how many of `unit` it is: ("ms", 0.001).

    That of the smallest number, so that none is 0.00…; a fraction is in per cent.
    """
    if unit == "fraction":
        return "%", 0.01
    sizes = [abs(value) for value in values if value]
    if unit not in SCALED or not sizes:
        return unit, 1.0
    for factor, prefix in PREFIXES:
        if min(sizes) >= factor and not (unit in ("s", "J s") and factor > 1):
            return f"{prefix}{unit}", factor
    return f"n{unit}", 1e-9


def shown_in(value: float, factor: float) -> str:
    """`shown_in(0.01234, 0.001)` → "12.3": three significant digits at least, and all before the point."""
    number = value / factor
    if number and abs(number) < 100:
        return f"{number:.3g}" if abs(number) >= 1e-3 else f"{number:.2e}"
    return f"{number:,.0f}".replace(",", " ")


def half_in(half: float, value: float, factor: float) -> str:
    """Half of an interval around `value` to the last of the digits that `shown_in` gives this:
    `half_in(0.00042, 0.01234, 0.001)` → "0.4", and "<0.1" for less than half of that digit.
    """
    if not value or not half:
        return shown_in(half, factor)
    places = max(0, 2 - math.floor(math.log10(abs(value / factor))))
    text = f"{half / factor:,.{places}f}".replace(",", " ")
    if not text.strip("0."):
        return f"<{10.0**-places:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def shown(value: float, unit: str, digits: int = 3) -> str:
    """One number with its unit, in significant digits: "1.23 ms", "45.6 %", "12 MB". Only physical
    units take prefixes: 1000 tokens a second are "1 000 1/s".
    """
    if unit == "fraction":
        return f"{100 * value:.{digits}g} %"
    if unit in SCALED and 0 < abs(value) < 1:
        unit, factor = unit_and_factor(unit, [value])
        return f"{value / factor:.{digits}g} {unit}"
    if unit in ("s", "J s"):
        return f"{value:.{digits}g} {unit}"
    if unit in SCALED:
        return human(value, unit, digits)
    number = f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", " ")
    return f"{number} {unit}".strip()
