"""Runs with several seeds compared in one figure: the API's values, by mouse, keyboard and address."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

import topologies
from engine.domain.units import human_s
from tests.browser.pages import STILL
from tests.browser.test_main_job import eventually, findings
from tests.browser.zooming import painted
from tests.support.predicted_runs import Store

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

STRATEGIES, RATES, SEEDS = ("voltage", "gpipe"), (1e7, 1e9), (0, 1, 2)
OF_GPIPE = len(RATES) * len(SEEDS)
"""The place of its first run."""
T_OF_TWO = 4.303
"""0.975 quantile of Student's t with 2 degrees of freedom: of three seeds."""


def body(strategy: str, bit_per_s: float, seed: int, new_tokens: int = 4) -> dict[str, Any]:
    cluster = topologies.load("lab-3").model_dump(mode="json")
    for link in cluster["links"]:
        link["bit_per_s"] = bit_per_s
    load = {
        "prompt_tokens": 16,
        "new_tokens": new_tokens,
        "requests": 6,
        "pattern": "poisson",
        "rate_per_s": 40,
    }
    return {
        "cluster": cluster,
        "model": "tiny-gpt2",
        "strategy": strategy,
        "seed": seed,
        "workload": load,
        "name": f"{strategy}, seed {seed}",
    }


@pytest.fixture(scope="module")
def ids(store: Store) -> list[int]:
    """Two strategies at two rates with three seeds each, in this order."""
    points = [(strategy, rate, seed) for strategy in STRATEGIES for rate in RATES for seed in SEEDS]
    return store([body(*point) for point in points])


@pytest.fixture(scope="module")
def other(store: Store) -> int:
    """A run that generates more."""
    (run,) = store([body("single", 1e8, 0, new_tokens=8)])
    return run


def marks(page: Page) -> Locator:
    return page.get_by_test_id("mark")


def address(ids: list[int], **more: str) -> str:
    query = "".join(f"&{name}={value}" for name, value in more.items())
    return f"/compare?ids={','.join(map(str, ids))}{query}"


def values_of(page: Page, ids: list[int], metric: str) -> dict[tuple[str, float], list[float]]:
    """What the API has of a metric, three seeds together."""
    answer = page.request.get(f"/api{address(ids)}").json()
    values = next(row["values"] for row in answer["metrics"] if row["name"] == metric)
    points = [(strategy, rate) for strategy in STRATEGIES for rate in RATES]
    return {point: values[3 * at : 3 * at + 3] for at, point in enumerate(points)}


def figure_rows(page: Page, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The figure as its button exports it."""
    with page.expect_download() as saved:
        page.get_by_test_id("figure-csv").click()
    file = tmp_path / "figure.csv"
    saved.value.save_as(file)
    yield from csv.DictReader(file.read_text(encoding="utf-8").splitlines())


def choose(page: Page, field: str, option: str) -> None:
    page.get_by_test_id(f"figure-{field}").click()
    page.get_by_role("option", name=option, exact=True).click()
    expect(page.get_by_test_id(f"figure-{field}")).to_have_value(option)


def test_seeds_become_means_with_intervals_at_every_rate(page: Page, ids: list[int], tmp_path: Path) -> None:
    page.goto(address(ids))
    expect(marks(page)).to_have_count(4)
    expect(page.get_by_test_id("figure-kind")).to_have_value("Lines")
    expect(page.get_by_test_id("figure-hue")).to_have_value("strategy")
    choose(page, "y", "Time to first token")
    expect(marks(page).first).to_have_attribute("data-x", "10000000")
    expected = values_of(page, ids, "ttft_s")
    rows = list(figure_rows(page, tmp_path))
    assert len(rows) == 4
    for row in rows:
        values = expected[row["series"], float(row["x value"])]
        margin = T_OF_TWO * stdev(values) / math.sqrt(3)
        assert (row["metric"], row["n"], row["source"]) == ("ttft_s", "3", "predicted")
        assert float(row["mean"]) == pytest.approx(fmean(values))
        assert float(row["interval high"]) == pytest.approx(fmean(values) + margin)
        assert [float(value) for value in row["values of the runs"].split()] == values
    assert max(stdev(values) for values in expected.values()) > 0, "the seeds change something"


DIFFERS = "([canvas, before]) => canvas.toDataURL() !== before"


def drawn(canvas: Locator) -> str:
    """The picture of a canvas."""
    text: str = canvas.evaluate("(canvas) => canvas.toDataURL()")
    return text


@pytest.mark.long("webapp/frontend/src", "webapp/experiments", "engine/experiments")
def test_the_address_keeps_the_figure_and_the_arrow_keys_read_it(page: Page, ids: list[int]) -> None:
    page.goto(address(ids))
    choose(page, "kind", "Boxes")
    choose(page, "x", "strategy")
    expect(page.get_by_test_id("figure-hue")).to_have_value("rate of 3 links")
    choose(page, "y", "Time to first token")
    expect(page.get_by_test_id("boxes").locator("rect")).to_have_count(4)
    address_of_figure = page.url
    page.goto("about:blank")
    page.goto(address_of_figure)
    expect(page.get_by_test_id("boxes").locator("rect")).to_have_count(4)
    plot = page.get_by_role("listbox", name="Time to first token by strategy")
    plot.focus()
    page.keyboard.press("Home")
    middle = human_s(median(values_of(page, ids, "ttft_s")["gpipe", RATES[0]]))
    tip = page.get_by_test_id("figure-tip")
    expect(tip).to_contain_text(f"median {middle}; the middle half of 3 values")
    expect(page.get_by_test_id(f"group-{ids[OF_GPIPE]}")).to_have_attribute("data-lit", "true")
    expect(page.locator("[data-lit]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("[data-lit]")).to_have_count(0)
    page.get_by_test_id(f"group-{ids[0]}").hover()
    expect(page.locator("[data-testid='mark'][aria-selected='true']")).to_have_attribute(
        "data-x", "voltage (6 runs)"
    )


def test_the_latency_of_the_runs_that_are_pointed_at_stands_out(page: Page, ids: list[int]) -> None:
    page.goto(address(ids))
    lines = page.get_by_test_id("latency-chart").locator("canvas")
    alike = drawn(lines)
    page.get_by_test_id(f"group-{ids[0]}").hover()
    page.wait_for_function(DIFFERS, arg=[lines.element_handle(), alike])
    page.mouse.move(0, 0)
    page.wait_for_function(f"(of) => !({DIFFERS})(of)", arg=[lines.element_handle(), alike])


def test_groups_of_repeats_are_set_against_the_group_of_the_baseline(page: Page, ids: list[int]) -> None:
    page.goto(address(ids, grouped="1"))
    means = {point: fmean(values) for point, values in values_of(page, ids, "ttft_s").items()}
    page.get_by_test_id(f"baseline-{ids[OF_GPIPE]}").click()
    expect(page.get_by_test_id("delta-ttft_s-2")).to_have_count(0)
    base = means["gpipe", RATES[0]]
    change = abs(means["voltage", RATES[1]] - base) / base
    text = f"{100 * change:.1f} %" if change < 0.1 else f"{100 * change:.0f} %"
    expect(page.get_by_test_id("delta-ttft_s-1")).to_contain_text(text)
    page.get_by_test_id("group-repeats").click()
    expect(page.get_by_test_id("value-ttft_s-11")).to_be_visible()
    assert "grouped=0" in page.url


FIRST_TOP = """(selector) => {
    const first = {};
    const look = () => { first.top ??= document.querySelector(selector)?.getBoundingClientRect().top; };
    new MutationObserver(look).observe(document, { childList: true, subtree: true });
    look();
    return first;
}"""
"""Where an element is when it is there first."""


def test_what_can_be_pressed_stays_in_its_place_when_the_figure_comes_late(
    page: Page, ids: list[int]
) -> None:
    held: list[Route] = []
    page.route("**/api/compare/figure?*", lambda route: held.append(route))
    with page.expect_response("**/api/compare?*") as compared:
        page.goto(address(ids, grouped="1"), wait_until="commit")
        first = page.evaluate_handle(FIRST_TOP, f"[data-testid='baseline-{ids[OF_GPIPE]}']")
    compared.value.finished()
    eventually(page, lambda: held != [], "the request for the figure")
    painted(page)
    held[0].continue_()
    expect(marks(page)).to_have_count(4)
    top = page.get_by_test_id(f"baseline-{ids[OF_GPIPE]}").evaluate("one => one.getBoundingClientRect().top")
    assert first.evaluate("one => one.top") == pytest.approx(top, abs=5)


def test_the_first_of_two_quick_choices_is_not_lost(page: Page, ids: list[int]) -> None:
    """The second comes before the page shows the first."""
    page.goto(address(ids))
    expect(marks(page)).to_have_count(4)
    choices = [f"[data-testid='{one}']" for one in (f"baseline-{ids[OF_GPIPE]}", "group-repeats")]
    page.evaluate(
        """async ([first, second]) => {
            document.querySelector(first).click();
            await null;
            document.querySelector(second).click();
        }""",
        choices,
    )
    expect(page).to_have_url(re.compile("grouped=0"))
    expect(page).to_have_url(re.compile(f"baseline={ids[OF_GPIPE]}"))


def test_runs_that_were_asked_for_something_else_are_said_to_be(
    page: Page, ids: list[int], other: int
) -> None:
    page.goto(address([*ids[:3], other]))
    said = page.get_by_test_id("figure-cautions")
    expect(said).to_contain_text(f"Run {other}: other workload.")
    expect(said).to_contain_text(f"run {ids[0]}, does not say which is better")
    page.goto(address(ids[:3]))
    expect(marks(page)).to_have_count(3)
    expect(page.get_by_test_id("figure-x")).to_have_value("every run by itself")
    expect(said).to_have_count(0)


@pytest.mark.long("webapp/frontend/src", "webapp/experiments", "engine/experiments")
def test_nothing_hinders_people_who_cannot_see_or_use_a_mouse(page: Page, ids: list[int]) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(address(ids[2:-2]))
    page.get_by_test_id("timelines").wait_for()
    page.add_style_tag(content=STILL)
    assert findings(page) == [], "lines"
    choose(page, "kind", "Boxes")
    assert findings(page) == [], "boxes"
    page.emulate_media(color_scheme="light")
    choose(page, "kind", "Bars")
    assert findings(page) == [], "bars"


def test_a_comparison_with_a_run_that_is_gone_goes_on_without_it(page: Page, ids: list[int]) -> None:
    gone = max(ids) + 1000
    page.goto(address([ids[0], gone, ids[3]], baseline=str(gone)))
    leave_out = page.get_by_test_id("leave-out")
    expect(leave_out).to_have_text(f"Leave out run {gone}")
    leave_out.press("Enter")
    expect(marks(page)).to_have_count(2)
    assert str(gone) not in page.url
