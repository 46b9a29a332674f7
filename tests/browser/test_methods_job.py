"""A method's own view, and a run that continues after a failure, in the browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_main_job import open_report, start_run, wait_for_tokens

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


@pytest.mark.long("webapp/frontend/src", "engine/strategies/edgeformer", "engine/runs")
def test_edgeformer_shows_who_attends_which_head(page: Page) -> None:
    page.goto("/runs/new")
    page.get_by_test_id("baselines").click()
    expect(page.get_by_test_id("reason-deepspeed")).to_contain_text("cannot share equally")
    start_run(page, "edgeformer", 4, "4", t_max="0.6", prune="paper")
    expect(page.get_by_test_id("head-0-0")).to_have_attribute("data-state", re.compile("attended|pruned"))
    heads = page.get_by_test_id("view-heads").locator("[data-testid^=head-]")
    expect(heads).to_have_count(6 * 8)
    attended = page.locator("[data-testid^=head-][data-state=attended]").first
    expect(page.locator("[data-testid^=head-][data-state=pruned]").first).to_be_attached()
    attended.hover()
    expect(page.get_by_test_id("heads-hover")).to_contain_text("attended by")
    open_report(page)
    expect(page.get_by_test_id("verdict-correct")).to_contain_text("KL divergence")


@pytest.mark.long("webapp/runs", "webapp/frontend/src/run", "webapp/frontend/src/pages/report", "engine/runs")
def test_a_pipeline_goes_on_without_a_device_that_was_dropped(page: Page) -> None:
    page.goto("/runs/new")
    start_run(page, "gpipe", 40, "100", planner="paper")  # so slow that a busy browser is in time
    wait_for_tokens(page, 3)
    stages = page.get_by_test_id("view-pipeline").locator("[data-testid^=passes-]")
    last = (stages.last.get_attribute("data-testid") or "").removeprefix("passes-")
    page.get_by_test_id("tab-devices").click()
    page.get_by_test_id(f"device-switch-{last}").click()
    page.get_by_test_id(f"device-drop-{last}").click()
    expect(page.get_by_test_id("recovery-0")).to_contain_text(f"{last} was killed")
    expect(page.get_by_test_id("replanned")).to_contain_text(f"{last} failed")
    open_report(page)
    expect(page.get_by_test_id("verdict-correct")).to_contain_text("same tokens")
    for step in ("detect_s", "replan_s", "rebuild_s"):
        expect(page.get_by_test_id(f"recovery-0-{step}")).to_be_attached()
    expect(page.get_by_test_id("without-replan")).to_contain_text("the run stops at")
