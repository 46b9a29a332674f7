r"""Tables for LaTeX with booktabs' rules and siunitx' columns: mean ± 95 % interval, and of how many runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from engine.domain.numbers_as_text import unit_and_factor
from engine.experiments.presentation.origin import Origin
from engine.experiments.results.pivot import TableCell, TableData

SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        "µ": r"\textmu{}",
        "±": r"$\pm$",
        "–": "--",
    }
)
SIGNIFICANT, MOST_DECIMALS = 3, 4
STATISTICS = {
    "interval": "mean ± 95 % interval (Student's t)",
    "mean": "mean",
    "median": "median",
    "min": "least",
    "max": "largest",
    "std": "standard deviation",
}


def latex(table: TableData, origin: Origin) -> str:
    """A `table` in one multiple of the unit, with a caption that says what its numbers are; the best of each
    row is bold.
    """
    found = [cell for row in table.rows for cell in row.cells if cell and cell.value is not None]
    unit, factor = unit_and_factor(table.unit, [cell.value for cell in found])
    column = len(table.row_titles)
    decimals = [_decimals([row.cells[at] for row in table.rows], factor) for at in range(len(table.columns))]
    formats = [
        _format([row.cells[at] for row in table.rows], factor, places) for at, places in enumerate(decimals)
    ]
    lines = [
        f"% {_one_line(origin.text)}",
        r"% Needs \usepackage{booktabs} and \usepackage{siunitx}.",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(_caption(table, unit, found))}}}",
        rf"\label{{tab:{table.name}}}",
        r"\sisetup{separate-uncertainty, detect-weight, mode=text}",
        r"\begin{tabular}{" + "l" * column + "".join(formats) + "}",
        r"\toprule",
    ]
    lines += [
        " & ".join([_tex(one) if at < column else f"{{{_tex(one)}}}" for at, one in enumerate(head)]) + r" \\"
        for head in table.heads
    ]
    lines.append(r"\midrule")
    for row in table.rows:
        cells = [_cell(cell, factor, places) for cell, places in zip(row.cells, decimals, strict=True)]
        lines.append(" & ".join([*map(_tex, row.headings), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _caption(table: TableData, unit: str, found: Sequence[TableCell]) -> str:
    """The question, the quantity in its unit, the statistic, and over how many runs."""
    title = _one_line(table.heading).rstrip(".")
    stop = "" if title.endswith(("?", "!")) else "."
    inside = f"{table.quantity} in {unit}" if unit else table.quantity
    sentences = [f"{title}{stop} {inside}: {STATISTICS[table.statistic]}, {_runs(table)}."]
    if table.together:
        sentences.append(f"Over all levels of {', '.join(table.together)}.")
    if any(cell.best for cell in found):
        of = " in each world" if "World" in table.column_titles else ""
        sentences.append(f"Bold: the best of each row{of}.")
    return " ".join(sentences)


def _runs(table: TableData) -> str:
    """How many runs cells have, as "n = 3", with the cells that have another number, and how many runs are
    left out as not valid.
    """
    named = [
        (", ".join((*row.headings, *heading)), cell)
        for row in table.rows
        for heading, cell in zip(table.columns, row.cells, strict=True)
        if cell is not None
    ]
    numbers = [cell.number for _, cell in named if cell.number]
    if not numbers:
        return "no runs"
    usual = max(sorted(set(numbers)), key=numbers.count)
    others = [f"{cell.number} at {name}" for name, cell in named if cell.number not in (0, usual)]
    text = f"n = {usual}" + (f" (but {'; '.join(others)})" if others else "")
    invalid = sum(cell.invalid for _, cell in named)
    return text + (f", without {invalid} {'run' if invalid == 1 else 'runs'} not valid" if invalid else "")


def _numbers(cells: Sequence[TableCell | None], factor: float) -> Iterator[tuple[float, float | None]]:
    """The value of each cell that has one, and half of its interval, in multiples of `factor`."""
    for cell in cells:
        if cell is not None and cell.value is not None:
            yield cell.value / factor, _half(cell, factor)


def _half(cell: TableCell, factor: float) -> float | None:
    return None if cell.low is None or cell.high is None else (cell.high - cell.low) / 2 / factor


def _decimals(cells: Sequence[TableCell | None], factor: float) -> int:
    """Decimals that give the smallest value of the column three significant digits."""
    sizes = [abs(value) for value, _ in _numbers(cells, factor) if value]
    digits = SIGNIFICANT - 1 - math.floor(math.log10(min(sizes))) if sizes else 0
    return min(MOST_DECIMALS, max(0, digits))


def _format(cells: Sequence[TableCell | None], factor: float, decimals: int) -> str:
    """The column of siunitx for numbers, whose widest value and interval have so many digits."""
    found = list(_numbers(cells, factor))
    if not found:
        return "c"
    whole = max(len(f"{abs(value):.{decimals}f}".split(".")[0]) for value, _ in found)
    sign = "-" if any(value < 0 for value, _ in found) else ""
    halves = [f"{half:.{decimals}f}" for _, half in found if half is not None]
    spread = max((len(half.replace(".", "").lstrip("0")) or 1 for half in halves), default=0)
    return f"S[table-format={sign}{whole}.{decimals}{f'({spread})' if spread else ''}]"


def _cell(cell: TableCell | None, factor: float, decimals: int) -> str:
    if cell is None:
        return "{}"
    if cell.value is None:
        return f"{{{_tex(_why(cell))}}}"
    text = f"{cell.value / factor:.{decimals}f}"
    half = _half(cell, factor)
    if half is not None:
        text += rf" \pm {half:.{decimals}f}"
    return rf"\bfseries {text}" if cell.best else text


def _why(cell: TableCell) -> str:
    if cell.invalid:
        return "not valid"
    return cell.outcomes[0].replace("_", " ") if cell.outcomes else "--"


def _tex(text: str) -> str:
    return text.translate(SPECIAL)


def _one_line(text: str) -> str:
    return " ".join(text.split())  # a second line would be no comment
