"""Converts and prints units. All values in the engine are in SI units: seconds, bytes, bit/s, FLOP/s."""

from __future__ import annotations

KILO, MEGA, GIGA, TERA = 1e3, 1e6, 1e9, 1e12
BITS_PER_BYTE = 8
ROUNDS_UP = 0.9995  # rounded to three digits, 999.5 of a unit is 1 of the next larger one

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}


def transfer_s(size_bytes: float, bit_per_s: float) -> float:
    """Seconds to put `size_bytes` on a link of `bit_per_s`."""
    return size_bytes * BITS_PER_BYTE / bit_per_s


def human(value: float, unit: str) -> str:
    """`human(5e8, "bit/s")` → `"500 Mbit/s"`; three significant digits, decimal prefixes."""
    for factor, prefix in ((TERA, "T"), (GIGA, "G"), (MEGA, "M"), (KILO, "k")):
        if abs(value) >= factor * ROUNDS_UP:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def human_s(seconds: float) -> str:
    """`human_s(0.00123)` → `"1.23 ms"`."""
    if seconds >= 1e3:
        return f"{seconds:.0f} s"
    if seconds == 0 or seconds >= ROUNDS_UP:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 * ROUNDS_UP else f"{seconds * 1e6:.3g} µs"
