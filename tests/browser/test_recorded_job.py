"""Recorded data in the form of a run and in an experiment: files that are chosen, the part that is meant, and
what is then predicted; files that are no recording. All by the keyboard: while a prediction arrives, what is
above moves what is below, and a click may miss.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Response, expect

from tests.browser.conftest import PATIENCE_MS

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

expect.set_options(timeout=PATIENCE_MS)
REQUESTS = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.68,9,3\n2023-11-16 18:15:46.69,400,5\n2023-11-16 18:15:59.00,7,9\n"
)
RATES = "at_s,bit_per_s\n0,30000000\n0.01,8000000\n60,1000000\n"
PROMPTS = '{"prompt": "The with statement", "new_tokens": 4}\n{"prompt": "When a function is called"}\n'
EXPERIMENT = """
name = "recorded"
title = "In a bus"
[base]
cluster = "lab-3"
model = "tiny-gpt2"
weights = "random"
strategy = "megatron"
params = { planner = "paper" }
[base.workload]
trace = "conv.csv,requests=2,most_prompt_tokens=12"

[[factor]]
name = "network"
path = "scenario"
values = ["none", "records/bus.csv@desk--hub,until_s=1"]

[[table]]
name = "times"
rows = ["network"]
metric = "latency_s"
"""


def press(page: Page, button: str) -> None:
    found = page.get_by_test_id(button)
    expect(found).to_be_enabled()
    found.press("Enter")


def choose(page: Page, button: str, *files: Path) -> None:
    with page.expect_file_chooser() as chooser:
        press(page, button)
    chooser.value.set_files(files)


def pick(page: Page, field: str, option: str) -> None:
    page.get_by_test_id(field).press("ArrowDown")
    page.get_by_role("option", name=re.compile(f"^{option}")).dispatch_event("click")


def choose_requests(page: Page, *files: Path) -> None:
    pick(page, "pattern", "As in a file")
    for file in files:
        choose(page, "trace-file", file)


def milliseconds(row: Locator) -> float:
    """The end-to-end latency in a row of an experiment's points."""
    expect(row).to_contain_text(" ms")
    (found,) = re.findall(r"([\d.]+) ms", row.get_by_role("cell").nth(4).inner_text())
    return float(found)


def is_prediction_of_the_parts(response: Response) -> bool:
    """Of the form as it is once both files have been read, with the part of each that was asked for."""
    predicts = response.ok and response.url.endswith("/api/predict")
    asked = response.request.post_data_json if predicts else None
    return bool(asked) and (len(asked["workload"]["trace"]), len(asked["scenario"]["changes"])) == (2, 2)


def refuses(page: Page, what: str, folder: Path) -> None:
    """Files that are no recording, each in words."""
    (folder / "wrong.csv").write_text("time,rate\n1,2\n")
    (folder / "large.csv").write_text("1\n" * 4_100_000)
    for name, sentence in (
        ("wrong.csv", "wrong.csv: "),
        ("large.csv", "large.csv is larger than 8 MB: take a part of it"),
    ):
        choose(page, f"{what}-file", folder / name)
        expect(page.get_by_test_id(f"{what}-error")).to_contain_text(sentence)


@pytest.mark.long("webapp/frontend/src", "webapp/runs", "engine/recorded")
def test_other_files_are_refused_and_a_run_is_predicted_with_the_parts_of_recorded_ones_that_were_asked_for(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "conv.csv").write_text(REQUESTS)
    (tmp_path / "bus.csv").write_text(RATES)
    page.goto("/runs/new")
    choose_requests(page)
    refuses(page, "trace", tmp_path)
    expect(page.get_by_test_id("start-run")).to_be_disabled()
    choose(page, "trace-file", tmp_path / "conv.csv")
    requests, rates = page.get_by_test_id("trace-about"), page.get_by_test_id("scenario-about")
    page.get_by_test_id("trace-part").fill("requests=2, most_tokens=12")
    expect(page.get_by_test_id("trace-error")).to_contain_text("the option 'most_tokens=12': expected each")
    page.get_by_test_id("trace-part").fill("requests=2, most_prompt_tokens=12")
    expect(requests).to_have_text(
        "2 requests, the last at 10 ms. 1 of 2 requests were longer: cut to the asked length."
    )
    press(page, "section-scenario")
    refuses(page, "scenario", tmp_path)
    choose(page, "scenario-file", tmp_path / "bus.csv")
    with page.expect_response(is_prediction_of_the_parts) as answer:
        page.get_by_test_id("scenario-part").fill("until_s=1")
        expect(rates).to_contain_text("From bus.csv. 2 changes until 10 ms")
    report = answer.value.json()["report"]
    assert [len(one["token_s"]) for one in report["requests"]] == [3, 5]
    changes = report["spec"]["scenario"]["changes"]
    assert [(one["at_s"], one["bit_per_s"]) for one in changes] == [(0.0, 30e6), (0.01, 8e6)]


def test_prompts_of_a_file_get_the_tokens_of_the_model_that_is_chosen(page: Page, tmp_path: Path) -> None:
    (tmp_path / "ask.jsonl").write_text(PROMPTS)
    page.goto("/runs/new")
    choose_requests(page, tmp_path / "ask.jsonl")
    about = page.get_by_test_id("trace-about")
    expect(about).to_contain_text("2 requests, the last at 0 s. Prompts with the tokens of demo-lm.")
    pick(page, "model", "tiny-gpt2")
    expect(about).to_contain_text("Prompts with the tokens of tiny-gpt2 with random weights.")
    expect(page.get_by_test_id("start-run")).to_be_enabled()


def test_an_experiment_is_imported_with_the_files_that_it_names_and_predicted(
    page: Page, tmp_path: Path
) -> None:
    texts = {"bus.toml": EXPERIMENT, "conv.csv": REQUESTS, "bus.csv": RATES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    page.goto("/experiments")
    chosen = [tmp_path / name for name in ("conv.csv", "bus.toml")]
    choose(page, "import-experiment", *chosen)
    missing = "The experiment names the recorded file bus.csv: give it together with the experiment."
    expect(page.get_by_role("alert").filter(has_text=missing)).to_be_visible()
    choose(page, "import-experiment", *chosen, tmp_path / "bus.csv")
    page.wait_for_url(re.compile(r"/experiments/\d+$"))
    press(page, "predict")
    expect(page.get_by_test_id("progress-predicted")).to_contain_text("2 of 2")
    at_rest, in_bus = (page.get_by_test_id(f"row-{index}-predicted") for index in (0, 1))
    expect(in_bus).to_contain_text("records/bus.csv@desk--hub,until_s=1")
    assert milliseconds(in_bus) > 1.2 * milliseconds(at_rest)
    expect(page.get_by_text("at 0 s, prompt tokens 9, new tokens 3; at 10 ms, prompt")).to_be_visible()
