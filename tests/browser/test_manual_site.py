"""The manual's search and its sortable tables, below /docs/ of a server and from files without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.devtools.site import build_site
from tests.ops.test_up import Up

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


@pytest.fixture(params=["served", "files"])
def manual(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The first page of the manual, in a browser that has logged in nowhere."""
    if request.param == "served":
        up: Up = request.getfixturevalue("site")
        first = f"{up.url}/docs/"
    else:
        assert build_site(tmp_path / "site") == 0
        first = (tmp_path / "site" / "index.html").as_uri()
    with closing(browser.new_context()) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.on("requestfailed", lambda lost: broken.append(lost.url))
        page.goto(first)
        yield page
        assert broken == []


def ask(page: Page, question: str) -> None:
    page.get_by_role("searchbox").fill(question)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Search: {question}")


def test_a_search_finds_sections_with_all_words_and_headings_first(manual: Page) -> None:
    ask(manual, "delay jitter loss")
    found = manual.locator("article.found")
    expect(found.first.locator("a")).to_have_attribute("href", "reference/emulation.html#delay-jitter-loss")
    marked = found.locator("mark").all_inner_texts()
    assert set(map(str.lower, marked)) <= {"delay", "jitter", "loss", ""}
    found.first.locator("a").click()
    expect(manual.locator("#delay-jitter-loss")).to_be_in_viewport()
    assert (
        manual.locator("body").evaluate("body => getComputedStyle(body).fontFamily").startswith('"IBM Plex')
    )
    ask(manual, "delay xyzzyplugh")
    expect(manual.locator("#found")).to_have_text(
        "No page has all of these words. Try fewer, or another one."
    )


def test_what_was_searched_for_is_shown_as_text(manual: Page) -> None:
    ask(manual, "<img src=x onerror=alert(1)>")
    expect(manual.locator("main img")).to_have_count(0)


def test_a_table_beside_a_page_unfolds_and_is_sorted_by_the_values_of_a_column(manual: Page) -> None:
    manual.locator('nav a[href="results/boards.html"]').click()
    table = manual.locator("details", has_text="ratio without its source")
    table.locator("summary").click()

    def rates() -> list[float]:
        cells = table.locator("tbody td:nth-child(6)").all_inner_texts()
        return [float(cell.removesuffix("/s")) for cell in cells]

    known = sorted(rates())
    assert known[0] < 10 and known[-1] > 1000, "some with an exponent, some without"
    head = table.get_by_role("button", name="predicted")
    head.click()
    assert rates() == known
    head.press("Enter")
    assert rates() == known[::-1]
    expect(table.locator("th[aria-sort=descending]")).to_have_text("predicted")
