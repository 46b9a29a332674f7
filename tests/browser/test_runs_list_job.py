"""The list of runs: its menus with the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.predicted_runs import Store
from tests.support.web import request_body

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


def test_deleting_a_saved_view_leaves_the_focus_in_the_menu(page: Page, store: Store) -> None:
    keys = page.keyboard
    store([request_body()])  # without a run there is no list
    page.goto("/runs")
    page.get_by_test_id("views").click()
    for name in ("one", "two", "three"):
        page.get_by_test_id("view-name").fill(name)
        keys.press("Enter")
        page.get_by_test_id(f"view-{name}").wait_for()
    page.get_by_test_id("view-two").focus()
    keys.press("Delete")
    expect(page.get_by_test_id("view-three")).to_be_focused()
    keys.press("Delete")
    expect(page.get_by_test_id("view-one")).to_be_focused()
    keys.press("Delete")
    expect(page.get_by_test_id("view-name")).to_be_focused()
    expect(page.locator("[data-testid^=view-]")).to_have_count(1)
