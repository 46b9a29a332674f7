"""A run that serves, as people and programs use it: chat, OpenAI's client, its end, the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from openai import OpenAI
from playwright.sync_api import Page, expect

import topologies
from bench.service import load_generator
from tests.browser.service import proof
from tests.browser.test_main_job import choose_strategy, findings, open_report
from tests.ops.test_up import Up
from tests.support import joining_clients
from webapp.ops.setup import set_up_guidellm

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]


WORDS = ["with", "for", "if", "try", "return", "import"]
BUSY = load_generator.Tolerance(on_the_way_s=4.0, per_token=0.4, rate=0.5)
PROFILES = [
    {"kind": "synchronous"},
    {"kind": "concurrent", "streams": [3]},
    {"kind": "poisson", "rate": [4.0]},
]


def secret(page: Page) -> str:
    """An API token, made over the page's session."""
    answer = page.request.post(
        "/api/account/tokens", data={"name": "notebook", "role": "operator"}, headers=proof(page.context)
    )
    assert answer.ok, answer.text()
    return str(answer.json()["secret"])


@pytest.mark.parametrize(
    "profiles",
    [(), pytest.param(PROFILES, marks=pytest.mark.long("webapp/serving", "bench/service", "engine/program"))],
    ids=["people", "also a load generator"],
)
def test_people_and_programs_ask_a_run_that_serves_and_every_token_is_proven(
    page: Page, site: Up, profiles: Sequence[dict[str, Any]]
) -> None:
    """The load generator GuideLLM is one of the programs: its figures agree with those of the report."""
    if profiles:
        set_up_guidellm()
    page.goto("/runs/new")
    choose_strategy(page, "megatron")
    page.get_by_test_id("pattern").click()
    page.get_by_role("option", name=re.compile("^Serve")).click()
    page.get_by_test_id("new-tokens").fill("12")
    expect(page.get_by_test_id("predicted-latency")).to_contain_text("s")
    page.get_by_test_id("start-run").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    run = page.url.rpartition("/")[2]

    page.get_by_test_id("ask-text").fill("When a function is called, its")
    page.get_by_test_id("ask-text").press("Enter")
    mine = page.get_by_test_id("exchange").nth(0)
    expect(mine).to_have_attribute("data-state", "answered")
    expect(mine.get_by_test_id("exchange-facts")).to_contain_text("12 of at most 12 tokens · first after")

    key = secret(page)
    client = OpenAI(base_url=f"{site.url}/v1", api_key=key)
    assert [model.id for model in client.models.list().data]
    stream = client.completions.create(model=run, prompt="The with statement", max_tokens=5, stream=True)
    text = "".join(chunk.choices[0].text for chunk in stream)
    theirs = page.get_by_test_id("exchange").nth(1)
    expect(theirs).to_have_attribute("data-state", "answered")
    assert theirs.get_by_test_id("answer").inner_text().strip() == text.strip() != ""
    page.mouse.move(0, 0)  # where the start button was there may be a tip now, which is no part of the page
    expect(page.get_by_role("tooltip")).to_have_count(0)
    assert findings(page) == []

    found: list[load_generator.Figures] = []
    if profiles:
        prompts = [f"The {word} statement" for word in WORDS]
        found = load_generator.ask(site.url, key, run, prompts, 12, 6, profiles)
    page.get_by_test_id("end-service").click()
    open_report(page)
    expect(page.get_by_test_id("load-table")).to_be_visible()
    report = page.request.get(f"/api/runs/{run}").json()["report"]
    assert report["correctness"]["ok"], report["correctness"]
    asked = [12, 5] + [12] * 6 * len(profiles)
    assert [len(request["token_s"]) for request in report["requests"]] == asked
    compared = list(load_generator.beside_the_report(found, report["requests"][2:], report["dilation"]))
    assert [name for name, _, _ in compared] == [profile["kind"] for profile in profiles]
    problems = [
        problem
        for name, seen, ours in compared
        for problem in load_generator.disagreements(name, seen, ours, 12, BUSY)
    ]
    assert problems == []


def test_programs_that_ask_while_others_are_answered_join_them_stop_and_go_away(page: Page, site: Up) -> None:
    page.goto("/runs/new")
    key = secret(page)
    body = {
        "cluster": topologies.load("lab-3").model_dump(mode="json"),
        "model": "demo-lm",
        "strategy": "megatron",
        "workload": {"pattern": "serve", "prompt_tokens": 16, "new_tokens": joining_clients.LONG}
        | {"requests": 20, "max_batch": 8},
        "dilation": 40,  # the long answer takes seconds: on a busy machine others must come meanwhile
    }
    started = page.request.post("/api/runs", data=body, headers=proof(page.context))
    assert started.ok, started.text()
    run = str(started.json()["id"])
    page.goto(f"/runs/{run}")
    expect(page.get_by_test_id("ask-text")).to_be_enabled()
    answers = joining_clients.ask_beside_each_other(site.url, key, run)
    page.get_by_test_id("end-service").click()
    open_report(page)
    joining_clients.check(answers, page.request.get(f"/api/runs/{run}").json()["report"])
