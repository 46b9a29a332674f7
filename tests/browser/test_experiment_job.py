"""The four-methods question as a person asks it: from the cluster to figure, emulated points, tables."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.person import Person

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

METHODS = ("single", "voltage", "gpipe", "galaxy")
DRAWN = 12
"""Marks of three lines: gpipe computes on one device alone as single does, and is one line with it."""
MOST_ACTIONS = 15


def marks(page: Page, source: str) -> Locator:
    return page.locator(f"[data-testid='mark'][data-source='{source}']")


def ask(page: Page) -> None:
    """Four methods at four rates with three seeds, in few actions; every value is predicted."""
    page.goto("/")
    page.get_by_test_id("nav-clusters").click()
    page.get_by_test_id("cluster-lab-3").get_by_role("link").first.click()
    person = Person(page)
    person.click("experiment-on-cluster")
    for method in METHODS:
        person.click(f"method-{method}")
    person.click("suggest-rate")
    person.fill("values-rate", "10, 50, 100, 500")
    person.fill("repeats", "3")
    person.fill("design-new-tokens", "2")
    expect(page.get_by_test_id("num-points")).to_have_text("48")
    expect(page.get_by_test_id("predict-time")).to_have_text("all predicted")
    expect(marks(page, "predicted")).to_have_count(DRAWN)
    assert person.actions <= MOST_ACTIONS


def emulate_the_best(page: Page) -> None:
    """Three seeds at each of four rates are emulated until the first value is there; the rest is given up."""
    page.get_by_test_id("choose-best").click()
    expect(page.get_by_test_id("chosen")).to_contain_text("12 points")
    page.get_by_test_id("emulate").click()
    page.wait_for_url(re.compile(r"/experiments/\d+$"))
    expect(page.get_by_test_id("progress-predicted")).to_contain_text("48 of 48")
    expect(page.get_by_test_id("progress-emulated")).to_contain_text(re.compile(r"Emulated [1-9]"))
    expect(marks(page, "emulated").first).to_be_visible()
    page.get_by_test_id("pause").click()
    expect(page.get_by_test_id("experiment-state")).to_have_text("paused")
    page.get_by_test_id("cancel").click()
    expect(page.get_by_test_id("experiment-state")).to_have_text("cancelled")


def look_at_results(page: Page) -> None:
    expect(marks(page, "predicted")).to_have_count(DRAWN)
    legend = page.get_by_test_id("legend-predicted")
    legend.click()
    expect(marks(page, "predicted")).to_have_count(0)
    expect(marks(page, "emulated").first).to_be_visible()
    legend.click()
    page.get_by_test_id("figure-or-table").get_by_text("Table").click()
    rows = page.get_by_test_id("figure-table").get_by_role("row")
    expect(rows.filter(has_text="predicted")).to_have_count(16)
    expect(page.get_by_test_id("best")).to_contain_text("500 Mbit/s")
    expect(page.get_by_test_id("pivot")).to_contain_text("100 Mbit/s")


def export(page: Page) -> None:
    with page.expect_download() as download:
        page.get_by_test_id("export").click()
        page.get_by_test_id("export-csv").click()
    head, *lines = download.value.path().read_text().splitlines()
    assert "ttft_s" in head
    assert len(lines) >= 48


def compare_two_points(page: Page) -> None:
    for number in (0, 1):
        row = page.get_by_test_id(f"row-{number}-predicted")
        row.get_by_role("checkbox").click()
    page.get_by_test_id("add-to-comparison").click()
    page.get_by_test_id("open-comparison").click()
    expect(page.get_by_test_id("points-differ")).to_contain_text("seed")
    expect(page.get_by_test_id("points-metrics")).to_contain_text(re.compile(r"\d\s(ms|s)"))


def test_four_methods_at_four_rates_with_three_seeds(page: Page) -> None:
    ask(page)
    emulate_the_best(page)
    look_at_results(page)
    export(page)
    compare_two_points(page)


def test_a_shipped_experiment_is_copied_and_a_reproduction_opened(page: Page) -> None:
    page.goto("/experiments")
    page.get_by_test_id("copy-scaling").click()
    page.wait_for_url(re.compile(r"/experiments/\d+$"))
    expect(page.get_by_role("heading", name="How much faster do more devices get?")).to_be_visible()
    page.get_by_test_id("predict").wait_for()
    page.goto("/experiments")
    page.get_by_test_id("open-reproductions").click()
    page.get_by_test_id("reproduction-voltage-fig4").click()
    expect(page.get_by_test_id("details-voltage-fig4")).to_contain_text("27.9 %")


@pytest.mark.long("webapp/frontend/src", "webapp/experiments", "engine/experiments")
def test_a_result_says_what_the_best_plans_would_give_and_a_click_adds_them(page: Page) -> None:
    page.goto("/experiments")
    page.get_by_test_id("copy-methods-by-rate").click()
    page.wait_for_url(re.compile(r"/experiments/\d+$"))
    page.get_by_test_id("predict").click()
    told = page.get_by_test_id("best-planners")
    expect(told).to_contain_text(re.compile(r"With planner=best, by prediction: .*voltage .* times as fast"))
    page.get_by_test_id("add-best-planners").click()
    expect(page.get_by_test_id("method-voltage")).to_contain_text("× 2")
    expect(page.get_by_test_id("method-single")).not_to_contain_text("×")
