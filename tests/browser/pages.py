"""Every page of the site by its path, and something that is there when it is complete."""

from __future__ import annotations

from collections.abc import Mapping

from playwright.sync_api import Page

PAGES: Mapping[str, tuple[str, str]] = {
    "start": ("/", "under-way"),
    "clusters": ("/clusters", "cluster-lab-3"),
    "editor": ("/clusters/new", "palette-switch"),
    "new-run": ("/runs/new", "strategy-voltage"),
    "runs": ("/runs", "runs"),
    "experiments": ("/experiments", "open-reproductions"),
    "experiment-design": ("/experiments/new", "method-single"),
    "reproductions": ("/experiments/reproductions", "reproduction-voltage-fig4"),
    "machines": ("/machines", "workers"),
    "account": ("/account", "tokens"),
}
"""Pages that need no run: name → path and test id."""

WINDOW = (1400, 900)
"""Of the tests that say nothing else."""

SIZES = ((1440, 900), (1280, 720))
PHONE = (390, 844)
ZOOMED = (720, 450)
"""A window of 1440 × 900 whose text is twice as large."""

STILL = "* { transition: none !important; animation: none !important }"


def open_page(page: Page, path: str, shown: str) -> None:
    """Open it and wait until `shown` is there; nothing moves on it from then on."""
    page.goto(path)
    page.get_by_test_id(shown).first.wait_for()
    page.add_style_tag(content=STILL)


def sideways_px(page: Page) -> int:
    """How far the page can be scrolled sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
