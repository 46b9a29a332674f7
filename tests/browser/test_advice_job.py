"""The advisor and the showcases in the browser: what a newcomer tries first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from engine.runs.showcase import predicted
from tests.browser.test_main_job import choose_strategy, eventually
from tests.support.predicted_runs import Store
from tests.support.web import request_body
from topologies.showcases import showcase

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


def test_the_advisor_ranks_strategies_again_after_an_edit(page: Page) -> None:
    page.goto("/clusters")
    page.get_by_text("Three unequal boards").first.click()
    first = page.get_by_test_id("advice").locator("li").first
    expect(first).to_contain_text("Computes on desk alone.")
    expect(page.get_by_test_id("advice-galaxy")).to_contain_text("Limited by")
    route = "**/api/advice/changes"
    refusal = {"detail": "The planning workers are busy with these changes and others."}
    page.route(route, lambda asked: asked.fulfill(status=503, headers={"Retry-After": "1"}, json=refusal))
    page.get_by_test_id("advice-try-changes").click()
    expect(page.get_by_test_id("changes-wait")).to_contain_text("They are tried again by themselves.")
    page.unroute(route)
    expect(page.get_by_test_id("advice-changes")).to_contain_text("desk twice as fast")
    page.get_by_test_id("advice-by").click()
    page.get_by_role("option", name="Memory").click()
    expect(first).not_to_contain_text("Computes on desk alone.")


def test_a_question_waits_while_the_workers_are_busy_and_is_then_answered(page: Page) -> None:
    refusal = {"detail": "The planning workers are busy."}
    page.route(
        "**/api/advice/question",
        lambda route: route.fulfill(status=503, headers={"Retry-After": "1"}, json=refusal),
    )
    page.goto("/clusters")
    page.get_by_text("Three unequal boards").first.click()
    page.get_by_test_id("question-ask").click()
    waits = page.get_by_test_id("question-waits")
    expect(waits).to_contain_text("The planning workers are busy. It is asked again by itself")
    page.unroute("**/api/advice/question")
    expect(page.get_by_test_id("question-answer")).to_contain_text("tokens/s")
    expect(waits).to_have_count(0)


def test_a_run_that_was_started_is_shown_although_its_form_was_edited_meanwhile(
    page: Page, store: Store
) -> None:
    (run_id,) = store([request_body()])
    asked: list[Route] = []
    page.goto("/runs/new")
    page.route("**/api/runs", lambda route: asked.append(route))
    page.get_by_test_id("start-run").click()
    eventually(page, lambda: len(asked) > 0, "the request")
    page.get_by_test_id("prompt").fill("Meanwhile")
    asked[0].fulfill(status=201, json={"id": run_id})
    page.wait_for_url(f"**/runs/{run_id}")


def test_new_run_says_once_why_a_run_cannot_be_and_leads_there(page: Page) -> None:
    page.goto("/runs/new")
    page.get_by_test_id("model").click()
    page.get_by_role("option", name="opt-13b").click()
    page.get_by_test_id("strategy-voltage").click()
    panel = page.get_by_test_id("prediction")
    expect(panel).to_have_text(
        "PredictedThis run cannot be predicted or started: see the reason under Strategy."
    )
    expect(page.get_by_text("voltage keeps all layers on every worker: give it more memory")).to_have_count(1)
    expect(page.get_by_test_id("start-run")).to_be_disabled()
    page.get_by_test_id("show-refusal").click()
    reason = page.get_by_test_id("error-strategy")
    expect(reason).to_be_focused()
    expect(reason).to_be_in_viewport()
    page.get_by_test_id("model").click()
    page.get_by_role("option", name="demo-lm").click()
    expect(reason).to_have_count(0)
    expect(page.get_by_test_id("start-run")).to_be_enabled()


def test_an_answer_does_not_put_another_strategy_below_the_pointer(page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/advice", lambda route: held.append(route))
    page.goto("/runs/new")
    titles = page.get_by_role("radiogroup", name="Strategy").get_by_role("radio").locator("b")
    eventually(page, lambda: held != [], "the request for advice")
    titles.nth(1).hover()
    before = titles.all_inner_texts()
    held[0].continue_()
    page.locator("[data-testid^='advised-']").first.wait_for()
    assert titles.all_inner_texts() == before
    page.mouse.move(0, 0)
    eventually(page, lambda: titles.all_inner_texts() != before, "the order by prediction")


def test_a_showcase_fills_in_the_form_and_its_runs_can_be_compared(page: Page) -> None:
    """The figures are those of the same runs predicted here."""
    runs = predicted(showcase("lime"))
    own, other = (f"{run.tokens_per_s:.3g} tokens/s" for run in (runs[""], runs["pipeline_offload"]) if run)
    page.goto("/")
    page.get_by_test_id("open-showcase-lime").click()
    expect(page.get_by_test_id("showcase-look-for")).to_contain_text("load their next layer")
    expect(page.get_by_test_id("strategy-lime")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_test_id("prediction")).to_have_attribute("data-state", "ready")
    expect(page.get_by_test_id("predicted-tokens-per-s")).to_have_text(own)
    page.get_by_test_id("choose-other-pipeline_offload").click()
    expect(page.get_by_test_id("strategy-pipeline_offload")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_test_id("predicted-tokens-per-s")).to_have_text(other)


def plan_by_rule(page: Page) -> None:
    """The rule gives every device something, and the best plan here one device everything."""
    page.get_by_test_id("section-parameters").click()
    page.get_by_test_id("param-planner").get_by_text("paper", exact=True).click()


@pytest.mark.long("webapp/frontend/src", "webapp/advice", "engine/advice")
def test_a_papers_planner_says_what_the_best_one_would_give_and_a_click_takes_it(page: Page) -> None:
    page.goto("/runs/new")
    choose_strategy(page, "galaxy")
    page.get_by_test_id("prompt").fill("The with statement is used to")
    told = page.get_by_test_id("best-planner")
    expect(told).to_contain_text(re.compile(r"planner=best\) would save \d+ % of the time"))
    panel, latency = page.get_by_test_id("prediction"), page.get_by_test_id("predicted-latency")
    expect(panel).to_have_attribute("data-state", "ready")
    before = latency.inner_text()
    page.get_by_test_id("use-best-planner").click()
    expect(told).to_have_count(0)
    expect(latency).not_to_have_text(before)
    page.get_by_test_id("section-parameters").click()
    expect(page.get_by_test_id("param-planner").get_by_label("best")).to_be_checked()


@pytest.mark.long("webapp/frontend/src", "webapp/runs", "webapp/advice", "engine/advice")
def test_a_plan_is_edited_by_hand_and_its_effect_and_reasons_predicted(page: Page, tmp_path: Path) -> None:
    page.goto("/runs/new")
    choose_strategy(page, "gpipe")
    plan_by_rule(page)
    expect(page.get_by_test_id("why-desk")).to_contain_text("one layer to shelf")
    page.get_by_test_id("plan-edit").click()
    effect = page.get_by_test_id("plan-effect")
    expect(effect).to_contain_text("as with the strategy’s own plan")
    page.get_by_test_id("plan-layers-window").fill("3")
    expect(effect).to_contain_text("% longer than its own plan")
    page.get_by_test_id("plan-undo").click()
    expect(effect).to_contain_text("as with the strategy’s own plan")
    page.get_by_test_id("plan-boundary-layers-desk").press("ArrowRight")
    expect(effect).to_contain_text("% shorter than its own plan")
    page.get_by_test_id("plan-move").click()
    expect(effect).to_contain_text("as with the strategy’s own plan")
    with page.expect_download() as saved:
        page.get_by_test_id("plan-save").click()
    file = tmp_path / "plan.json"
    saved.value.save_as(file)
    page.get_by_test_id("plan-own").click()
    expect(page.get_by_test_id("plan-edit")).to_be_enabled()
    page.get_by_test_id("strategy-edgeshard").click()
    page.get_by_test_id("plan-file").set_input_files(file)
    expect(page.get_by_test_id("plan-layers-desk")).to_be_visible()
    page.get_by_test_id("strategy-megatron").click()
    plan_by_rule(page)
    page.get_by_test_id("plan-edit").click()
    page.get_by_test_id("plan-heads-window").fill("4")
    expect(effect).to_contain_text("% longer than its own plan")
    page.get_by_test_id("strategy-single").click()
    page.get_by_test_id("plan-edit").click()
    page.get_by_test_id("plan-device").click()
    page.get_by_role("option", name="window").click()
    expect(effect).to_contain_text("% longer than its own plan")


def test_a_slower_link_stretches_the_lanes_of_a_race_which_then_runs_for_real(page: Page) -> None:
    """Reduced motion shows the end of both lanes at once."""
    page.goto("/")
    page.get_by_test_id("race-place").scroll_into_view_if_needed()
    race, lanes = page.get_by_test_id("race"), [page.get_by_test_id(f"lane-time-{at}") for at in (0, 1)]

    def needed_s() -> list[float]:
        shown = [re.search(r"done in ([\d.]+) (m?)s", lane.inner_text()) for lane in lanes]
        return [float(one[1]) * (1e-3 if one[2] else 1) if one else 0.0 for one in shown]

    for lane in lanes:
        expect(lane).to_contain_text("96 of 96 tokens")
    before = needed_s()
    assert before[0] < before[1] < 3 * before[0]  # 100 Mbit/s
    slider = race.get_by_role("slider")
    for _ in range(20):
        slider.press("ArrowLeft")
    expect(page.get_by_test_id("race-rate")).to_have_text("1 Mbit/s")
    eventually(page, lambda: needed_s()[1] > 4 * needed_s()[0] > 16 * before[0], "both lanes")
    with page.expect_request("**/api/runs") as first:
        page.get_by_test_id("race-run-both").click()
    asked = json.loads(first.value.post_data or "")
    assert (asked["strategy"], asked["workload"]["new_tokens"]) == ("lime", 96)
    assert {link["bit_per_s"] for link in asked["cluster"]["links"]} == {1e6}
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    assert page.request.get("/api/runs").json()[0]["strategy"] == "megatron"
