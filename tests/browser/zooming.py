"""Zooming the time axis of a run with a real pointer: the flag of a change shows where the axis is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

NAMES_PX = 150
"""The left of every canvas is for names."""


def zoom_by_dragging(page: Page) -> None:
    """Along the axis, and with Shift on a chart, dragging shows a stretch; Escape or going back none."""
    axis = page.locator("[role=group][aria-label^='Time axis'] canvas").first
    chart, flag = page.get_by_test_id("latency-chart"), page.get_by_test_id("flag").first
    axis.scroll_into_view_if_needed()
    place, whole = box(axis), box(flag)
    left, right = place["x"] + NAMES_PX, place["x"] + place["width"]
    start, end = whole["x"] - (whole["x"] - left) / 2, whole["x"] + (right - whole["x"]) / 4
    shown = left + (whole["x"] - start) / (end - start) * (right - left)

    pull(page, axis, start, end, held=lambda: page.keyboard.press("Escape"))
    middle = place["y"] + place["height"] / 2
    pull(page, axis, start, end, held=lambda: page.mouse.move(start, middle))
    expect(window(page)).to_have_value("all")
    assert box(flag)["x"] == pytest.approx(whole["x"], abs=1)

    for canvas, key in ((axis, None), (chart, "Shift")):
        assert cursor(page, canvas, start, key) == "crosshair"
        pull(page, canvas, start, end, key)
        expect(page.get_by_test_id("timeline-window").locator("input:checked")).to_have_count(0)
        assert box(flag)["x"] == pytest.approx(shown, abs=2)
        page.get_by_test_id("timeline-window").get_by_text("All").click()
        painted(page)
        assert box(flag)["x"] == pytest.approx(whole["x"], abs=1)

    assert cursor(page, chart, start, None) == "grab"
    pull(page, chart, start, start + 30)
    assert box(flag)["x"] == pytest.approx(whole["x"] + 30, abs=1)
    page.locator("[role=group][aria-label^='Time axis']").first.press("0")
    expect(window(page)).to_have_value("all")
    expect(page.get_by_test_id("shown-instant")).not_to_contain_text("shown")


def window(page: Page) -> Locator:
    return page.get_by_test_id("timeline-window").locator("input:checked")


def cursor(page: Page, canvas: Locator, x: float, key: str | None) -> str:
    if key:
        page.keyboard.down(key)
    place = box(canvas)
    page.mouse.move(x + 1, place["y"] + place["height"] / 2)
    page.mouse.move(x, place["y"] + place["height"] / 2)
    found: str = canvas.evaluate("(element) => getComputedStyle(element).cursor")
    if key:
        page.keyboard.up(key)
    return found


def pull(
    page: Page,
    canvas: Locator,
    start: float,
    end: float,
    key: str | None = None,
    held: Callable[[], None] = lambda: None,
) -> None:
    """Drag from one x to another; `held` happens before the button is let go."""
    y = box(canvas)["y"] + box(canvas)["height"] / 2
    if key:
        page.keyboard.down(key)
    page.mouse.move(start, y)
    page.mouse.down()
    page.mouse.move(end, y, steps=5)
    held()
    page.mouse.up()
    if key:
        page.keyboard.up(key)
    painted(page)


def painted(page: Page) -> None:
    """Wait for two frames: what a person does is painted with the next."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def box(element: Locator) -> FloatRect:
    found = element.bounding_box()
    assert found is not None
    return found
