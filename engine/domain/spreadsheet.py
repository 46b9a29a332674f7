"""Cells of CSV files that people open in spreadsheets."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A text cell that starts so would be a formula in a spreadsheet."""


def harmless(value: object) -> object:
    """`value` as a cell: text that a spreadsheet would take for a formula gets an apostrophe before it.
    Numbers stay, also as text.
    """
    if not isinstance(value, str) or not value.startswith(FORMULA_STARTS):
        return value
    return value if _is_number(value) else f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
