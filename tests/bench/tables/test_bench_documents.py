"""Benchmarks' tables and charts find their place in the documents."""

import csv
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.tables.chart import Chart, Scatter, as_svg, lines
from bench.tables.documents import FIRST_ROWS, MOST_ROWS, write, write_section
from bench.tables.rows import Table, as_markdown, as_text
from engine.domain.errors import SpecError

SVG = "{http://www.w3.org/2000/svg}"


def chart(*points: tuple[str, float, float]) -> Chart:
    return Chart("Pacing <&>", "devices", "", lines(points), lambda x: f"{x:g} of", lambda y: f"{y:.1%}")


def scatter(*points: tuple[str, float, float]) -> Scatter:
    return Scatter(
        "Latency <&>", "predicted", "emulated", lines(points), lambda value: f"{value:g} s", band=0.1
    )


def drawn(made: Chart | Scatter) -> tuple[set[str], int]:
    """The words of a drawing, and how many marks it has, those of ticks included."""
    root = ElementTree.fromstring(as_svg(made))
    return {text.text or "" for text in root.iter(f"{SVG}text")}, len(list(root.iter(f"{SVG}use")))


def test_a_chart_says_its_names_and_writes_values_as_it_is_told() -> None:
    words, _ = drawn(chart(("a", 1, 0.0), ("b", 1, 0.2), ("a", 16, 0.1), ("b", 16, -0.1)))
    assert {"a", "b", "1 of", "16 of", "devices", "Pacing <&>", "20.0%"} <= words
    words, _ = drawn(scatter(("gpipe", 0.1, 0.11), ("lime", 2.0, 2.0)))
    assert {"gpipe", "lime", "predicted", "emulated", "Latency <&>", "1 s"} <= words


@pytest.mark.parametrize("of", [chart, scatter])
def test_every_point_is_drawn(of: Callable[..., Chart | Scatter]) -> None:
    points = [("a", 1.0, 1.0), ("a", 16.0, 15.0), ("b", 4.0, 4.0)]
    one_more = [*points, ("b", 4.0, 4.1)]
    assert drawn(of(*one_more))[1] == drawn(of(*points))[1] + 1


def test_a_chart_of_one_point_and_of_equal_values_can_be_drawn() -> None:
    for made in (chart(("a", 4, 0.0)), chart(("a", 1, 1.0), ("a", 2, 1.0)), scatter(("a", 2.0, 2.0))):
        assert drawn(made)[1]
    with pytest.raises(ValueError, match="has no points"):
        as_svg(chart())


def test_a_result_replaces_what_stood_between_its_markers(tmp_path: Path) -> None:
    document = tmp_path / "fidelity.md"
    document.write_text("before\n<!-- bench load -->\nold\n<!-- end load -->\nafter\n", encoding="utf-8")
    table = Table("Title.", ("a", "b"), (("1", "2"),), chart(("x", 1, 0.1)))
    write(tmp_path, "fidelity", "load", table)
    text = document.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- bench load -->\n![Pacing <&>](fidelity-load.svg)\n\nTitle.\n")
    assert "old" not in text
    assert text.endswith("<!-- end load -->\nafter\n")
    assert (tmp_path / "fidelity-load.svg").exists()
    with pytest.raises(SpecError, match="the markers <!-- bench other --> and"):
        write(tmp_path, "fidelity", "other", table)


def test_a_long_table_stands_beside_its_document_whole_and_in_it_are_its_summary_or_first_rows(
    tmp_path: Path,
) -> None:
    document = tmp_path / "boards.md"
    document.write_text("<!-- bench x -->\n<!-- end x -->\n", encoding="utf-8")
    rows = tuple((f"`pi-{number}`", f"{number}, {number}") for number in range(MOST_ROWS + 1))
    long = Table("Rates.", ("board", "[rates](a.md)"), rows)
    write(tmp_path, "boards", "x", long)
    text = document.read_text(encoding="utf-8")
    assert text.count("| `pi-") == FIRST_ROWS and "\n\n[All 13 rows](boards/x.csv)\n\n" in text
    kept = list(csv.reader((tmp_path / "boards" / "x.csv").read_text(encoding="utf-8").splitlines()))
    assert kept == [["board", "rates"], *([f"pi-{number}", f"{number}, {number}"] for number in range(13))]
    write(tmp_path, "boards", "x", long._replace(summary=Table("In all.", ("n",), (("13",),))))
    text = document.read_text(encoding="utf-8")
    assert "| 13 |" in text and "pi-" not in text and "Rates.\n\n[All 13 rows]" in text


def test_a_section_replaces_only_what_is_between_its_markers(tmp_path: Path) -> None:
    document = tmp_path / "bench.md"
    document.write_text("before\n<!-- bench x -->\nold\n<!-- end x -->\nafter\n")
    write_section(document, "x", "new")
    assert document.read_text() == "before\n<!-- bench x -->\nnew\n<!-- end x -->\nafter\n"
    with pytest.raises(SpecError, match=r"markers <!-- bench y --> .* are missing"):
        write_section(document, "y", "new")


def test_a_table_is_aligned_as_text_and_valid_as_markdown() -> None:
    table = Table("Title", ("a", "b"), (("1", "22"), ("333", "4")))
    assert as_text(table) == "Title\n  a   b\n  1  22\n333   4"
    assert as_markdown(table) == "Title\n\n| a | b |\n| ---: | ---: |\n| 1 | 22 |\n| 333 | 4 |"
