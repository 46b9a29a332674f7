"""Every page, in both schemes of colours and in several sizes: nothing hinders anybody, and all fits."""

from __future__ import annotations

from itertools import cycle
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from bench.service.browser_probe import wire_bytes
from tests.browser.conftest import PATIENCE_MS
from tests.browser.pages import PAGES, SIZES, ZOOMED, open_page, sideways_px
from tests.browser.test_main_job import serious_findings
from tests.ops.test_up import Up
from tests.support.predicted_runs import store_predicted
from tests.support.web import request_body

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

expect.set_options(timeout=PATIENCE_MS)
MOST_CODE_BYTES = 150_000
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def of_runs(site: Up) -> dict[str, tuple[str, str]]:
    """The pages that need runs, as `PAGES` has the others."""
    bodies = [request_body(strategy=strategy) for strategy in ("gpipe", "single")]
    first, second = store_predicted(bodies, site.environment)
    return {
        "report": (f"/runs/{first}", "finding"),
        "compare": (f"/compare?ids={first},{second}", "metrics"),
    }


def test_every_page_can_be_used_by_everybody_and_fits_a_narrow_window(
    page: Page, of_runs: dict[str, tuple[str, str]]
) -> None:
    """Every other page in dark colours."""
    size = page.viewport_size
    assert size is not None
    for (name, (path, shown)), scheme in zip((PAGES | of_runs).items(), cycle(SCHEMES), strict=False):
        page.emulate_media(color_scheme=scheme)
        open_page(page, path, shown)
        assert sheets_before_those_of_mantine(page) == ["first"], name
        assert serious_findings(page) == [], f"{name}, {scheme}"
        page.set_viewport_size({"width": ZOOMED[0], "height": ZOOMED[1]})
        assert sideways_px(page) <= 0, name
        page.set_viewport_size(size)


@pytest.mark.long("webapp/frontend", "tests/browser")
def test_every_page_can_be_used_by_everybody_in_every_scheme_and_size(
    page: Page, of_runs: dict[str, tuple[str, str]]
) -> None:
    size = page.viewport_size
    assert size is not None
    for name, (path, shown) in (PAGES | of_runs).items():
        open_page(page, path, shown)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert serious_findings(page) == [], f"{name}, {scheme}"
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            assert sideways_px(page) <= 0, f"{name}, {width}×{height}"
        page.set_viewport_size(size)


def test_the_first_page_needs_little_code(page: Page) -> None:
    assert code_bytes(page, "/", "start-demo") <= MOST_CODE_BYTES


def sheets_before_those_of_mantine(page: Page) -> list[str]:
    """A sheet that comes before Mantine's loses where both have a rule of equal weight."""
    names: list[str] = page.evaluate(
        """() => [...document.styleSheets]
            .flatMap(({ href }) => href?.match(/([^/]+)-.{8}[.]css$/)?.[1] ?? [])"""
    )
    return names[: names.index("moreStyles")] if "moreStyles" in names else ["first"]


def code_bytes(page: Page, path: str, shown: str) -> int:
    """How much of scripts and styles comes over the wire for a page that no cache has."""
    session = page.context.new_cdp_session(page)
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    got = wire_bytes(session)
    page.goto(path)
    page.get_by_test_id(shown).wait_for()
    page.wait_for_load_state("networkidle")
    session.detach()
    return sum(size for url, size in got.items() if url.endswith((".js", ".css")))
