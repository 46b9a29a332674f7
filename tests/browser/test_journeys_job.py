"""The journeys of a researcher and of an engineer, from the log-in on, with their actions counted.

The researcher's ends in a PDF with two figures and two tables, whose numbers are those of the CSV and those
that come out by hand from the JSON of the runs.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import fmean, stdev

import pypdfium2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.person import Person
from tests.ops.test_up import Up, password_in

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

METHODS = ("single", "voltage", "gpipe", "galaxy")
METRICS = {"latency_s": "End-to-end latency", "ttft_s": "Time to first token"}
T_OF_TWO = 12.706
"""Student's t for a 95 % interval over two runs."""

FINISHED = re.compile("^finished")
"""With points left out that are not valid on a busy machine, or without."""

MOST_OF_RESEARCHER, MOST_OF_ENGINEER = 25, 6

Place = tuple[str, float, str]
"""Method, rate in bit/s, world."""


@pytest.fixture
def visitor(site: Up, browser: Browser) -> Iterator[Person]:
    """Somebody in front of the log-in, who has been given the address and the password."""
    with closing(browser.new_context(viewport={"width": 1440, "height": 900}, base_url=site.url)) as context:
        context.set_default_timeout(PATIENCE_MS)
        opened = context.new_page()
        opened.goto("/")
        yield Person(opened)


def log_in(person: Person, site: Up) -> None:
    person.fill("login-username", "admin")
    person.fill("login-password", site.password or password_in(site.text()))
    person.click("login-submit")
    person.page.get_by_test_id("nav-clusters").wait_for()


def open_lab_3(person: Person) -> None:
    """From the list of clusters."""
    person.click("nav-clusters")
    person.follow("cluster-lab-3")


def ask(person: Person) -> None:
    """Four methods at two rates with two seeds; the best of each place is emulated, too."""
    page = person.page
    open_lab_3(person)
    person.click("experiment-on-cluster")
    for method in METHODS:
        person.click(f"method-{method}")
    person.click("suggest-rate")
    person.fill("values-rate", "10, 500")
    person.fill("repeats", "2")
    expect(page.get_by_test_id("num-points")).to_have_text("16")
    expect(page.get_by_test_id("predict-time")).to_have_text("all predicted")
    person.click("choose-best")
    person.click("emulate")
    page.wait_for_url(re.compile(r"/experiments/\d+$"))
    expect(page.get_by_test_id("experiment-state")).to_have_text(FINISHED, timeout=6 * PATIENCE_MS)


def keep_a_second_figure(person: Person) -> None:
    person.choose("view-metric", METRICS["ttft_s"])
    person.click("keep-figure")
    expect(person.page.get_by_test_id("choose-figure")).to_have_value(re.compile(METRICS["ttft_s"]))
    expect(person.page.get_by_test_id("experiment-state")).to_have_text(FINISHED)


def print_the_report(person: Person, folder: Path) -> Path:
    """The report as one file, opened and printed to PDF."""
    page = person.page
    with page.expect_download() as saved:
        person.click("export")
        person.click("export-html")
    report = folder / "report.html"
    saved.value.save_as(report)
    opened = page.context.new_page()
    opened.goto(f"file://{report}")
    person.actions += 1
    printed = folder / "report.pdf"
    opened.pdf(path=printed, format="A4")
    person.actions += 1
    opened.close()
    return printed


def points_by_hand(page: Page, folder: Path) -> dict[Place, list[dict[str, float]]]:
    """What every run's own JSON says, by place; of predictions, which are no runs, the row. Each is compared
    with its line of the CSV.
    """
    number = page.url.rpartition("/")[2]
    with page.expect_download() as saved:
        page.get_by_test_id("export").click()
        page.get_by_test_id("export-csv").click()
    saved.value.save_as(folder / "points.csv")
    lines = list(csv.DictReader((folder / "points.csv").read_text().splitlines()))
    found: dict[Place, list[dict[str, float]]] = defaultdict(list)
    rows = page.request.get(f"/api/experiments/{number}/rows").json()["rows"]
    assert len(lines) == len(rows)
    for row in rows:
        place = (row["coordinates"]["strategy"], row["coordinates"]["rate"], row["world"])
        (line,) = [
            line
            for line in lines
            if (line["strategy"], float(line["rate"]), line["world"], int(line["seed"]))
            == (*place, row["seed"])
        ]
        values = {name: row["metrics"][name] for name in METRICS}
        if row["run_id"] is not None:
            report = page.request.get(f"/api/runs/{row['run_id']}").json()["report"]
            values = {name: report[name] for name in METRICS}
        assert {name: float(line[name]) for name in METRICS} == pytest.approx(values)
        if row["metrics"].get("valid", 1):
            found[place].append(values)
    return found


def place_of(line: dict[str, str]) -> Place:
    return (line["strategy"], float(line["rate"]), line["world"])


def numbers_in(printed: Path, metric: str) -> dict[float, list[str]]:
    """Rate in Mbit/s → the means and half intervals in the table of a figure, in ms. Runs that are not valid,
    or did not end, have words there; intervals of equal runs are "<0.01".
    """
    text = "\n".join(page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(printed))
    table = text.replace("\r", "").partition(f"{METRICS[metric]} in ms, mean ±")[2]
    lines = re.findall(r"^(\d+) Mbit/s (.+)$", table, re.MULTILINE)
    return {float(rate): re.findall(r"<?\d[\d.]*", cells) for rate, cells in lines[:2]}


def tells(text: str, value: float) -> bool:
    """Whether a number of the table is this one, to its last digit."""
    last = 10.0 ** -len(text.partition(".")[2])
    if text.startswith("<"):
        return value < float(text[1:])
    return float(text) == pytest.approx(value, rel=0.006, abs=0.6 * last)


@pytest.mark.long("webapp", "engine/experiments", "engine/reports")
@pytest.mark.timeout(1800)  # beside much other work, each of four runs is emulated three times
def test_a_researcher_comes_from_the_log_in_to_a_pdf_with_two_figures_and_two_tables(
    visitor: Person, site: Up, tmp_path: Path
) -> None:
    log_in(visitor, site)
    ask(visitor)
    keep_a_second_figure(visitor)
    printed = print_the_report(visitor, tmp_path)
    assert visitor.actions <= MOST_OF_RESEARCHER

    by_place = points_by_hand(visitor.page, tmp_path)
    for metric in METRICS:
        in_pdf = numbers_in(printed, metric)
        assert sorted(in_pdf) == [10, 500]
        for rate, shown in in_pdf.items():
            expected: list[float] = []
            for method in dict.fromkeys(place[0] for place in by_place):
                for world in ("predicted", "emulated"):
                    values = [one[metric] * 1e3 for one in by_place[method, rate * 1e6, world]]
                    if values:
                        expected.append(fmean(values))
                    if len(values) == 2:
                        expected.append(T_OF_TWO * stdev(values) / math.sqrt(2))
            assert len(shown) == len(expected)
            assert all(map(tells, shown, expected)), (shown, expected)


def test_an_engineer_has_an_answer_in_six_actions(visitor: Person, site: Up) -> None:
    log_in(visitor, site)
    open_lab_3(visitor)
    answer = visitor.page.get_by_test_id("advice-answer")
    expect(answer).to_contain_text(re.compile(r"^(Yes|No)[:,] .+"))
    assert visitor.actions <= MOST_OF_ENGINEER
