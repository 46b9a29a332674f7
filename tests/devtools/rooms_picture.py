"""Draw docs/rooms.svg: every part with its rooms from the ground floor up, and an arc for every import.

`picture` is a pure function from the parts of rooms.toml to the text of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from tests.devtools.rooms import Part, Room, floors

WIDTH = 1240
MARGIN = 28
COLUMN_GAP = 28
PANEL_GAP = 22
HEADING_HEIGHT = 52
PANEL_HEAD = 40
PANEL_FOOT = 12
ROW_HEIGHT = 38
ARCS_WIDTH = 132
"""Between a panel's left edge and its boxes."""
BOX_WIDTH = 100
BOX_HEIGHT = 27
PORT = 6
"""Arrows leave a box this far below its middle and arrive this far above."""

INK, GREY, PALE, LINE, PAPER = "#1c2430", "#475162", "#8891a0", "#dde1e7", "#f4f5f7"
COLOURS = (
    "#4269d0",
    "#c2571a",
    "#3a8f4d",
    "#a4459b",
    "#8a6d1c",
    "#1f8a99",
    "#c43d5b",
    "#6b5fc7",
    "#5d6670",
)
"""One per row, so that an arc can be followed to the room that imports."""
FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"


class Row(NamedTuple):
    """One row of a panel: a room, or in the first panel a part. Arrows to `doors` are dashed."""

    name: str
    text: str
    floor: int
    imports: tuple[str, ...]
    doors: tuple[str, ...] = ()


class Panel(NamedTuple):
    title: str
    unit: str
    rows: tuple[Row, ...]

    @property
    def height(self) -> float:
        return PANEL_HEAD + ROW_HEIGHT * len(self.rows) + PANEL_FOOT


def picture(parts: Sequence[Part]) -> str:
    """The SVG document."""
    doors = {part.name: tuple(part.doors.values()) for part in parts}
    first = Panel("The parts", "parts", _rows(parts, doors))
    others = [Panel(part.title, "rooms", _rows(part.rooms, {})) for part in parts if part.rooms]
    left, right = _columns(others)
    below = HEADING_HEIGHT + first.height + PANEL_GAP
    height = below + max(_column_height(left), _column_height(right)) - PANEL_GAP + MARGIN
    width = (WIDTH - 2 * MARGIN - COLUMN_GAP) / 2
    body = [
        *_panel(first, MARGIN, HEADING_HEIGHT, WIDTH - 2 * MARGIN),
        *_column(left, MARGIN, below, width),
        *_column(right, MARGIN + width + COLUMN_GAP, below, width),
    ]
    return "\n".join([*_head(height), *body, "</svg>", ""])


def _rows(rooms: Sequence[Room | Part], doors: Mapping[str, tuple[str, ...]]) -> tuple[Row, ...]:
    """Highest floor first, so that every arrow points down."""
    of = floors(rooms)
    rows = [
        Row(room.name, room.text, of[room.name], room.imports, doors.get(room.name, ())) for room in rooms
    ]
    return tuple(sorted(reversed(rows), key=lambda row: -row.floor))


def _columns(panels: Sequence[Panel]) -> tuple[list[Panel], list[Panel]]:
    """The tallest first, each panel joins the shorter column."""
    columns: tuple[list[Panel], list[Panel]] = ([], [])
    for panel in sorted(panels, key=lambda panel: -panel.height):
        min(columns, key=_column_height).append(panel)
    return columns


def _column_height(column: Sequence[Panel]) -> float:
    return sum(panel.height + PANEL_GAP for panel in column)


def _head(height: float) -> Iterator[str]:
    size = f'width="{WIDTH}" height="{height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" {size}'
    yield f'  font-family="{FONT}">'
    yield "<title>The rooms of EdgeLoom and the imports between them</title>"
    yield f'<rect {size} fill="{PAPER}"/>'
    yield _text(MARGIN, 34, "Rooms of EdgeLoom", 19, INK, "bold")
    note = "An arrow means: imports. All point down; tests/architecture allows no others."
    yield _text(WIDTH - MARGIN, 34, note, 12.5, GREY, "end")


def _column(column: Sequence[Panel], x: float, y: float, width: float) -> Iterator[str]:
    for panel in column:
        yield from _panel(panel, x, y, width)
        y += panel.height + PANEL_GAP


def _panel(panel: Panel, x: float, y: float, width: float) -> Iterator[str]:
    rows = panel.rows
    arrows = sum(len(row.imports) + len(row.doors) for row in rows)
    size = f'width="{width:.0f}" height="{panel.height:.0f}"'
    yield f'<g transform="translate({x:.0f} {y:.0f})">'
    yield f'<rect {size} rx="10" fill="#ffffff" stroke="{LINE}"/>'
    yield _text(16, 26, panel.title, 13.5, INK, "bold")
    summary = f"{len(rows)} {panel.unit}, {rows[0].floor + 1} floors, {arrows} arrows"
    yield _text(width - 16, 26, summary, 11, PALE, "end")
    for place, row in enumerate(rows[1:], start=1):
        if row.floor != rows[place - 1].floor:
            line_y = PANEL_HEAD + ROW_HEIGHT * place
            yield (
                f'<path d="M{ARCS_WIDTH} {line_y} H{width - 16:.0f}" stroke="{LINE}" stroke-opacity=".6"/>'
            )
    middles = {row.name: PANEL_HEAD + ROW_HEIGHT * (place + 0.5) for place, row in enumerate(rows)}
    for place, row in enumerate(rows):
        yield from _arcs(row, COLOURS[place % len(COLOURS)], middles)
    for place, row in enumerate(rows):
        yield from _box(row, COLOURS[place % len(COLOURS)], middles[row.name])
    yield "</g>"


def _arcs(row: Row, colour: str, middles: Mapping[str, float]) -> Iterator[str]:
    """From the lower left edge of a box down to the upper left edge of every box that it imports."""
    begin = middles[row.name] + PORT
    longest = max(middles.values()) - min(middles.values())
    for target in (*row.imports, *row.doors):
        end = middles[target] - PORT
        left = ARCS_WIDTH - 14 - (ARCS_WIDTH - 30) * (end - begin) / longest
        line = f'fill="none" stroke="{colour}" stroke-opacity=".62" stroke-width="1.5"'
        dashes = ' stroke-dasharray="4 3"' if target in row.doors else ""
        curve = f"C{left:.0f} {begin:.0f} {left:.0f} {end:.0f} {ARCS_WIDTH - 6} {end:.0f}"
        yield f'<path d="M{ARCS_WIDTH} {begin:.0f} {curve}" {line}{dashes}/>'
        yield f'<path d="M{ARCS_WIDTH} {end:.0f} l-7 -3.5 v7 z" fill="{colour}"/>'


def _box(row: Row, colour: str, middle: float) -> Iterator[str]:
    place = f'x="{ARCS_WIDTH}" y="{middle - BOX_HEIGHT / 2:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"'
    yield f'<rect {place} rx="6" fill="{colour}" fill-opacity=".13" stroke="{colour}" stroke-width="1.2"/>'
    yield _text(ARCS_WIDTH + BOX_WIDTH / 2, middle + 4, row.name, 12.5, INK, "bold middle")
    yield _text(ARCS_WIDTH + BOX_WIDTH + 12, middle + 4, row.text, 12, GREY)


def _text(x: float, y: float, content: str, size: float, fill: str, style: str = "") -> str:
    """`style` may say bold, and middle or end for the place of x in the text."""
    weight = ' font-weight="650"' if "bold" in style else ""
    anchor = next((f' text-anchor="{word}"' for word in ("middle", "end") if word in style), "")
    place = f'x="{x:.0f}" y="{y:.1f}" font-size="{size}"'
    return f'<text {place} fill="{fill}"{weight}{anchor}>{escape(content)}</text>'
