"""Converts and prints units. All values in the engine are in SI units: seconds, bytes, bit/s, FLOP/s."""

from __future__ import annotations

KILO, MEGA, GIGA, TERA = 1e3, 1e6, 1e9, 1e12
BITS_PER_BYTE = 8
"""Rates of links are in bits, sizes in bytes."""
ROUNDS_UP = 0.9995  # rounded to three digits, 999.5 of a unit is 1 of the next larger one

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}

UNITS_OF_FIELDS = (
    ("bit_per_s", "bit/s"),
    ("flop_per_s", "FLOP/s"),
    ("byte_per_s", "B/s"),
    ("_per_s", "1/s"),
    ("j_per_memory_byte", "J/B"),
    ("j_per_disk_byte", "J/B"),
    ("j_per_byte", "J/B"),
    ("bytes", "B"),
    ("_frac", "fraction"),
    ("_j_s", "J·s"),
    ("_j", "J"),
    ("watts", "W"),
    ("_s", "s"),
)
"""The end of a field's name → the unit of its values."""


def unit_of_field(name: str) -> str | None:
    """The unit that the end of a field's name tells; None where it tells none."""
    return next((unit for end, unit in UNITS_OF_FIELDS if name.endswith(end)), None)


def transfer_s(size_bytes: float, bit_per_s: float) -> float:
    """Seconds to put `size_bytes` on a link of `bit_per_s`."""
    return size_bytes * BITS_PER_BYTE / bit_per_s


def human(value: float, unit: str, digits: int = 3) -> str:
    """A `value` for people, in `digits` significant digits with decimal prefixes: `human(5e8, "bit/s")` →
    `"500 Mbit/s"`.
    """
    rounds_up = 1 - 0.5 * 10**-digits
    for factor, prefix in ((TERA, "T"), (GIGA, "G"), (MEGA, "M"), (KILO, "k")):
        if abs(value) >= factor * rounds_up:
            return f"{value / factor:.{digits}g} {prefix}{unit}"
    return f"{value:.{digits}g} {unit}"


def human_apart(one: float, other: float, unit: str) -> tuple[str, str]:
    """Texts of both values with as many digits as it takes to tell them apart, three at least.

    `human_apart(64.0001e9, 64e9, "B")` → `("64.0001 GB", "64 GB")`
    """
    for digits in range(3, 17):
        texts = human(one, unit, digits), human(other, unit, digits)
        if texts[0] != texts[1]:
            break
    return texts


def between(low: str, high: str) -> str:
    """`between("2 s", "3 s")` → `"2 s to 3 s"`; one text where both are the same."""
    return low if low == high else f"{low} to {high}"


def needs_and_has(need_bytes: float, have_bytes: float, what: str = "") -> str:
    """Say need and have, for refusals; `what` follows the need: `needs_and_has(2e6, 1e6, " for its weights")`
    → `"needs 2 MB for its weights and has 1 MB"`.
    """
    need, have = human_apart(need_bytes, have_bytes, "B")
    return f"needs {need}{what} and has {have}"


def human_j(joules: float) -> str:
    """An amount of `joules` for people: `human_j(0.000377)` → `"377 µJ"`."""
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ")):
        if joules == 0 or joules >= factor * ROUNDS_UP:
            return human(joules / factor, f"{prefix}J")
    return human(joules / 1e-9, "nJ")


def human_s(seconds: float) -> str:
    """A time in `seconds` for people: `human_s(0.00123)` → `"1.23 ms"`."""
    if seconds >= 1e3:
        return f"{seconds:.0f} s"
    if seconds == 0 or seconds >= ROUNDS_UP:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 * ROUNDS_UP else f"{seconds * 1e6:.3g} µs"
