"""Every page, in both schemes of colours and in several sizes: nothing hinders anybody, and all fits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import cycle
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from bench.service.browser_probe import wire_bytes
from edgeloom import Client
from engine.experiments.design.shipped_files import FOLDER
from tests.browser.conftest import PATIENCE_MS
from tests.browser.pages import PAGES, PHONE, SIZES, WINDOW, ZOOMED, open_page, sideways_px
from tests.browser.test_main_job import findings
from tests.browser.test_serving_job import secret
from tests.ops.test_up import Up
from tests.support.predicted_runs import Store
from tests.support.web import request_body

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

MOST_CODE_BYTES = 150_000
Size = tuple[int, int]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


MANUAL = {"manual": "/docs/", "guide": "/docs/guides/runs", "reference": "/docs/reference/catalogue"}
"""Pages of the manual of each kind: the index, text with pictures, tables."""


@pytest.fixture(scope="module")
def of_runs(
    site: Up, store: Store, browser: Browser, administrator: StorageState
) -> dict[str, tuple[str, str]]:
    """The pages that need runs or an experiment, as `PAGES` has the others."""
    first, second = store([request_body(strategy=strategy) for strategy in ("gpipe", "single")])
    with closing(browser.new_context(base_url=site.url, storage_state=administrator)) as context:
        context.set_default_timeout(PATIENCE_MS)
        client = Client(site.url, secret(context.new_page()))
    experiment = client.new_experiment((FOLDER / "methods-by-rate.toml").read_text(encoding="utf-8"))
    experiment.predict()
    experiment.wait()
    cluster = next(row["id"] for row in client.clusters() if row["name"] == "lab-3")
    return {
        "report": (f"/runs/{first}", "finding"),
        "recording": (f"/runs/{first}?view=live", "timeline-panel"),
        "compare": (f"/compare?ids={first},{second}", "metrics"),
        "advice": (f"/clusters/{cluster}", "advice-answer"),
        "experiment": (f"/experiments/{experiment.id}", "pivot"),
        "experiment-design of one": (f"/experiments/new?from={experiment.id}", "figure"),
    }


@pytest.mark.long("webapp/frontend", "tests/browser")
def test_every_page_can_be_used_by_everybody_in_every_scheme_and_size(
    page: Page, of_runs: dict[str, tuple[str, str]]
) -> None:
    for name, (path, shown) in (PAGES | of_runs).items():
        open_page(page, path, shown)
        assert sheets_before_those_of_mantine(page) == ["first"], name
        fits(page, name, (*SIZES, ZOOMED))
        for size in (PHONE, WINDOW):
            fits(page, name, [size])
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert findings(page) == [], f"{name}, {scheme}, {size}"


def test_the_pages_of_the_manual_can_be_used_by_everybody(page: Page) -> None:
    for (name, path), scheme in zip(MANUAL.items(), cycle(SCHEMES), strict=False):
        page.emulate_media(color_scheme=scheme)
        page.goto(path)
        assert findings(page) == [], f"{name}, {scheme}"
        assert sideways_px(page) <= 0, name


def test_a_telephone_shows_which_page_is_open(page: Page) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.goto("/machines")
    expect(page.get_by_test_id("nav-machines")).to_be_in_viewport(ratio=1)


def test_the_first_page_needs_little_code(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 300})  # the race comes when it is scrolled into view
    assert code_bytes(page, "/", "start-demo") <= MOST_CODE_BYTES


def fits(page: Page, name: str, sizes: Sequence[Size]) -> None:
    """In windows of all `sizes`, the last of which stays."""
    for size in sizes:
        resize(page, size)
        assert sideways_px(page) <= 0, f"{name}, {size}"


def resize(page: Page, size: Size) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


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
