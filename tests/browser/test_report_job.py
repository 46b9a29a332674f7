"""The report page: its export as a file that runs nothing, and what it says without the events of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

import topologies
from tests.support.predicted_runs import Store

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

HOSTILE = "</title></script><img src=x onerror=ran=1><script>ran=1</script>"
NOTES = f"first line\n{HOSTILE}"


@pytest.fixture(scope="module")
def run_id(store: Store) -> int:
    """Three requests of several lengths, a change of a link, and words that would be code elsewhere."""
    cluster = topologies.load("lab-3").model_dump(mode="json")
    link = cluster["links"][0]
    change = {"kind": "set_rate", "at_s": 0.01, "link": f"{link['a']}--{link['b']}", "bit_per_s": 5e6}
    sizes = [{"at_s": 0.0, "prompt_tokens": 8, "new_tokens": count} for count in (5, 3, 4)]
    body: dict[str, Any] = {
        "cluster": cluster | {"title": HOSTILE, "description": HOSTILE},
        "model": "tiny-gpt2",
        "strategy": "megatron",
        "params": {"planner": "paper"},
        "name": HOSTILE,
        "notes": NOTES,
        "tags": [HOSTILE[:40]],
        "workload": {"pattern": "trace", "trace": sizes},
        "scenario": {"changes": [change | {"direction": "both"}]},
    }
    (stored,) = store([body])
    return stored


@contextmanager
def exported(page: Page, tmp_path: Path) -> Iterator[tuple[Page, list[str]]]:
    """The exported file in a page of its own, and the addresses that it asked for."""
    page.get_by_test_id("export").click()
    with page.expect_download() as saved:
        page.get_by_test_id("export-report.html").click()
    file = tmp_path / "report.html"
    saved.value.save_as(file)
    reader = page.context.new_page()
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(file.as_uri())
    yield reader, [url for url in asked if url != file.as_uri() and not url.startswith("data:")]
    reader.close()


def test_words_of_people_stay_words_in_the_exported_file(page: Page, run_id: int, tmp_path: Path) -> None:
    page.goto(f"/runs/{run_id}")
    page.get_by_test_id("timeline-panel").wait_for()
    with exported(page, tmp_path) as (reader, asked):
        expect(reader.get_by_role("heading", level=1)).to_have_text(HOSTILE)
        expect(reader.locator("dd").last).to_have_text(NOTES)
        reader.get_by_text("Spec", exact=True).click()
        expect(reader.locator("details[open] pre")).to_contain_text(HOSTILE)
        assert reader.locator("script, img:not([src^='data:'])").count() == 0
        assert reader.evaluate("typeof ran") == "undefined"
        assert asked == []
    assert page.evaluate("typeof ran") == "undefined"


def test_the_exported_file_forbids_what_it_does_not_need(page: Page, run_id: int, tmp_path: Path) -> None:
    page.goto(f"/runs/{run_id}")
    page.get_by_test_id("timeline-panel").wait_for()
    with exported(page, tmp_path) as (reader, _):
        refused = reader.evaluate(
            """async (address) => {
                const refused = [];
                document.addEventListener('securitypolicyviolation', 
                    ({ effectiveDirective }) => refused.push(effectiveDirective));
                const script = document.createElement('script');
                script.textContent = 'window.ran = 1';
                const image = document.createElement('img');
                image.src = address;
                const gone = new Promise((resolve) => image.addEventListener('error', resolve));
                document.body.append(script, image);
                await gone;
                return [...refused, typeof window.ran];
            }""",
            page.url,
        )
    assert sorted(refused) == ["img-src", "script-src-elem", "undefined"]


def test_an_edit_that_was_not_saved_is_not_exported(page: Page, run_id: int, tmp_path: Path) -> None:
    page.goto(f"/runs/{run_id}")
    page.get_by_test_id("timeline-panel").wait_for()
    page.get_by_test_id("run-name-input").fill("a name in the making")
    page.get_by_test_id("notes").fill("notes in the making")
    page.get_by_test_id("tags").fill("tag in the making")
    page.keyboard.press("Enter")
    expect(page.get_by_text("tag in the making")).to_be_visible()
    with exported(page, tmp_path) as (reader, _):
        expect(reader.locator("dd")).to_have_text([HOSTILE, HOSTILE[:40], NOTES])
        expect(reader.get_by_text("in the making")).to_have_count(0)
    expect(page.locator("dd").first).to_be_hidden()


def refuse(route: Route) -> None:
    sentence = '{"detail": "The archive of this run is damaged."}'
    route.fulfill(status=500, content_type="application/json", body=sentence)


def test_without_its_events_a_report_says_what_is_missing_and_keeps_the_rest(page: Page, run_id: int) -> None:
    page.route(f"**/api/runs/{run_id}/past*", refuse)
    page.route(f"**/api/runs/{run_id}/events*", refuse)
    page.goto(f"/runs/{run_id}")
    error = page.get_by_test_id("error")
    expect(error).to_contain_text("The archive of this run is damaged.")
    expect(error).to_contain_text("no timeline and no view of the method")
    expect(page.get_by_test_id("timeline-panel")).to_have_count(0)
    expect(page.get_by_test_id("happening")).to_have_count(1)
    expect(page.get_by_role("columnheader", name="By", exact=True)).to_have_count(0)
    text, count = page.get_by_test_id("generated-text"), page.get_by_test_id("token-count")
    for request, tokens in ((0, 5), (1, 3), (2, 4)):
        page.get_by_test_id("request-choice").get_by_text(f"Request {request}").click()
        expect(count).to_have_text(f"{tokens} of {tokens} tokens")
        assert text.inner_text().count("▢") == tokens
    page.get_by_test_id("export").click()
    whole = page.get_by_test_id("export-report.html")
    expect(whole).to_be_disabled()
    expect(whole).to_contain_text("the events of the run could not be read")
    expect(page.get_by_test_id("export-report.json")).to_be_enabled()
    page.keyboard.press("Escape")
    page.unroute_all()
    error.get_by_role("button", name="Try again").click()
    expect(page.get_by_test_id("timeline-panel")).to_be_visible()
    expect(page.get_by_role("columnheader", name="By", exact=True)).to_have_count(1)


@pytest.mark.parametrize("width", [1280, 720])
def test_the_contents_need_no_scrolling_and_lead_to_sections_that_nothing_covers(
    page: Page, run_id: int, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 720})
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"/runs/{run_id}")
    page.get_by_test_id("timeline-panel").wait_for()
    contents = page.get_by_test_id("contents")
    assert contents.evaluate("bar => bar.scrollWidth - bar.clientWidth") <= 0
    contents.get_by_role("button", name="Devices").click()
    section = page.locator("section[aria-label='Devices']")
    expect(section).to_be_focused()
    stays = contents.evaluate("bar => getComputedStyle(bar).position") == "sticky"
    assert stays == (width == 1280)
    covered_px = contents.evaluate("bar => bar.getBoundingClientRect().bottom") if stays else 0
    top_px = section.evaluate("one => one.getBoundingClientRect().top")
    assert covered_px <= top_px <= covered_px + 40


def test_a_run_by_a_papers_rule_is_repeated_with_the_best_plan(page: Page, run_id: int) -> None:
    page.goto(f"/runs/{run_id}")
    expect(page.get_by_test_id("finding")).to_contain_text("A better split (planner=best) would save")
    page.get_by_test_id("repeat-with-changes").click()
    page.get_by_test_id("repeat-with-best-planner").click()
    page.get_by_test_id("section-parameters").click()
    expect(page.get_by_test_id("param-planner").get_by_label("best")).to_be_checked()
