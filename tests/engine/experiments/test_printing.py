"""Printed figures, read back from their PDF: nothing is cut off, nothing lies on anything, and the file leads
back to its experiment.
"""

from __future__ import annotations

from typing import Any

import pypdfium2
import pytest

from engine.domain.errors import SpecError
from engine.domain.presented import Figure
from engine.experiments.presentation.figure_data import figure_data
from engine.experiments.presentation.origin import Origin
from engine.experiments.presentation.plot import WIDTHS, pdf, picture
from tests.support.experiment_rows import RATES, experiment_of, rows_of

ORIGIN = Origin(experiment="test", digest="0123456789abcdef", version=3)
QUESTION = "Which method answers first at which rate of the links, and which does when it costs $5 or $6?"
NAMES = [
    *("Single device", "GPipe", "EdgeShard", "Voltage, trimmed", "Tensor parallelism"),
    "LIME with a long name of a variant: prefetch 4, ratio 0.25",
    *(f"method {index}" for index in range(6, 24)),
]
Box = tuple[float, float, float, float]


DRAWN: dict[str, bytes] = {}


def drawn(number: int, size: str, **fields: Any) -> bytes:
    """Of so many methods at three rates in two worlds; one emulation is not valid. Each is drawn once."""
    key = repr((number, size, fields))
    if key not in DRAWN:
        DRAWN[key] = _drawn(number, size, **fields)
    return DRAWN[key]


def _drawn(number: int, size: str, **fields: Any) -> bytes:
    methods = {"name": "method", "title": "Method", "path": "strategy", "values": NAMES[:number]}
    worlds = ["predicted", "emulated"]
    experiment = experiment_of(methods, RATES, worlds=worlds, seeds=[0, 1], title=QUESTION)
    rows = rows_of(
        "latency_s",
        {
            (name, rate, world): [0.2 + 0.1 * at + 3e4 / rate, 0.25 + 0.1 * at + 3e4 / rate]
            for at, name in enumerate(NAMES[:number])
            for rate in (1e6, 1e7, 1e8)
            for world in worlds
        },
    )
    last = rows[-1]
    rows[-1] = last.model_copy(update={"metrics": {**last.metrics, "valid": 0.0}})
    return pdf(figure_data(experiment, Figure(name="f", **fields), rows), ORIGIN, size)


def words_of(page: Any) -> list[tuple[str, Box]]:
    """Words and their boxes (left, bottom, right, top) in points; a word's letters follow each other
    closely, and those of a ligature have the same box.
    """
    text = page.get_textpage()
    found: list[tuple[str, Box]] = []
    for index in range(text.count_chars()):
        letter = text.get_text_range(index, 1)
        if not letter.strip():
            found.append(("", (0, 0, 0, 0)))
            continue
        box = text.get_charbox(index)
        word, (left, bottom, right, top) = found[-1] if found else ("", (0, 0, 0, 0))
        near = word and -8 < box[0] - right < 4 and min(box[3], top) - max(box[1], bottom) > -4
        if near:
            both = (min(left, box[0]), min(bottom, box[1]), max(right, box[2]), max(top, box[3]))
            found[-1] = (word + letter, both)
        else:
            found.append((letter, box))
    return [(word, box) for word, box in found if word]


def overlap(one: Box, other: Box) -> bool:
    return all(min(one[2 + axis], other[2 + axis]) - max(one[axis], other[axis]) > 0.5 for axis in (0, 1))


LINES = {"x": "rate", "series": "method", "log_x": True}
CASES: list[tuple[int, str, dict[str, Any]]] = [
    (2, "ieee-1", LINES),
    (24, "acm-1", {**LINES, "log_y": True}),
    (24, "ieee-2", LINES),
    (4, "acm-2", {**LINES, "facet": "rate", "x": "world", "kind": "bars", "log_x": False}),
    (8, "ieee-1", {"kind": "bars", "x": "method", "series": "rate"}),
    (4, "ieee-1", {"kind": "bars", "x": "rate", "series": "method"}),
    (7, "", {"kind": "heatmap", "x": "rate", "series": "method"}),
]


@pytest.mark.parametrize(("number", "size", "fields"), CASES)
def test_all_words_of_a_printed_figure_are_on_its_page_and_none_lies_on_another(
    number: int, size: str, fields: dict[str, Any]
) -> None:
    document = pypdfium2.PdfDocument(drawn(number, size, **fields))
    (page,) = document
    width, height = page.get_size()
    if size:
        assert width == pytest.approx(WIDTHS[size] * 72, abs=0.1)
    assert height <= 9.5 * 72  # of a page of letter paper with its margins
    words = words_of(page)
    outside = [
        word
        for word, (left, bottom, right, top) in words
        if min(left, bottom) < 0 or right > width or top > height
    ]
    assert outside == []
    on_each_other = [
        (word, other)
        for at, (word, box) in enumerate(words)
        for other, other_box in words[at + 1 :]
        if overlap(box, other_box)
    ]
    assert on_each_other == []
    text = " ".join(page.get_textpage().get_text_range().split())
    if fields.get("kind") != "heatmap":
        assert "predicted" in text and "emulated" in text and "not valid, left out" in text
    for name in NAMES[:number]:
        assert name.split()[0] in text
    assert text.count("$5") == 1  # as it is written, not as a formula
    assert "End-to-end latency (ms)" in text and " ms" not in text.replace("(ms)", "")


def test_a_printed_figure_leads_back_to_its_experiment_and_has_its_fonts() -> None:
    content = drawn(2, "ieee-1", **LINES)
    about = pypdfium2.PdfDocument(content).get_metadata_dict()
    assert (about["Title"], about["Subject"]) == (QUESTION, ORIGIN.text)
    assert b"/FontFile2" in content and b"/Type3" not in content


def test_series_differ_without_colours() -> None:
    """Each of eight has another mark, and the two worlds of each differ in dashes and in filling."""
    methods = {"name": "method", "path": "strategy", "values": NAMES[:8]}
    worlds = ["predicted", "emulated"]
    experiment = experiment_of(methods, RATES, worlds=worlds)
    values = {
        (name, rate, world): 1.0 + rate for name in NAMES[:8] for rate in (1e6, 1e7) for world in worlds
    }
    data = figure_data(experiment, Figure(name="f", x="rate", series="method"), rows_of("latency_s", values))
    lines = [line for line in picture(data).axes[0].lines if len(line.get_xdata()) == 2]
    looks = {
        (line.get_marker(), line.get_linestyle(), line.get_markerfacecolor() == "white") for line in lines
    }
    assert len(looks) == len(lines) == 16
    assert {(dashes, is_hollow) for _, dashes, is_hollow in looks} == {("--", True), ("-", False)}


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(SpecError, match="There is no size a4: choose one of ieee-1, ieee-2, acm-1, acm-2"):
        drawn(2, "a4", **LINES)
