"""Recorded data in the form of a run: a trace of rates and one of requests, and what the report says of both;
prompts of a file; files that are no recording.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE_MS
from tests.browser.test_main_job import choose_strategy

pytestmark = [pytest.mark.browser, pytest.mark.root, pytest.mark.redis]

expect.set_options(timeout=PATIENCE_MS)
REQUESTS = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.68,9,3\n2023-11-16 18:15:46.69,400,5\n2023-11-16 18:15:59.00,7,9\n"
)
RATES = "at_s,bit_per_s\n0,30000000\n0.01,8000000\n60,1000000\n"


def choose(page: Page, what: str, file: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_test_id(f"{what}-file").click()
    chooser.value.set_files(file)


def choose_pattern(page: Page, words: str) -> None:
    page.get_by_test_id("pattern").click()
    page.get_by_role("option", name=re.compile(words)).click()


def test_a_run_with_recorded_rates_and_requests_reports_what_the_files_said(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "conv.csv").write_text(REQUESTS)
    (tmp_path / "bus.csv").write_text(RATES)
    page.goto("/runs/new")
    choose_strategy(page, "megatron")
    choose_pattern(page, "^As in a file")
    choose(page, "trace", tmp_path / "conv.csv")
    expect(page.get_by_test_id("trace-about")).to_contain_text("3 requests, the last at 12.3 s.")
    page.get_by_test_id("trace-part").fill("requests=2, most_prompt_tokens=12")
    expect(page.get_by_test_id("trace-about")).to_have_text(
        "2 requests, the last at 10 ms. 1 of 2 requests were longer: cut to the asked length."
    )
    page.get_by_test_id("section-scenario").click()
    choose(page, "scenario", tmp_path / "bus.csv")
    expect(page.get_by_test_id("scenario-about")).to_contain_text("From bus.csv. 3 changes until 60.0 s")
    page.get_by_test_id("scenario-part").fill("until_s=1")
    expect(page.get_by_test_id("scenario-about")).to_contain_text("2 changes until 10 ms")
    page.get_by_test_id("start-run").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))

    happened = page.get_by_test_id("happening")
    expect(happened).to_have_count(2)
    expect(happened.nth(0)).to_contain_text("30 Mbit/s")
    expect(happened.nth(1)).to_contain_text("8 Mbit/s")
    for request, tokens in ((0, 3), (1, 5)):
        page.get_by_test_id("request-choice").get_by_text(f"Request {request}").click()
        expect(page.get_by_test_id("token-count")).to_have_text(f"{tokens} of {tokens} tokens")


def test_prompts_of_a_file_get_the_tokens_of_the_model_that_is_chosen(page: Page, tmp_path: Path) -> None:
    lines = ('{"prompt": "The with statement", "new_tokens": 4}', '{"prompt": "When a function is called"}')
    (tmp_path / "ask.jsonl").write_text("\n".join(lines))
    page.goto("/runs/new")
    choose_pattern(page, "^As in a file")
    choose(page, "trace", tmp_path / "ask.jsonl")
    about = page.get_by_test_id("trace-about")
    expect(about).to_contain_text("2 requests, the last at 0 s. Prompts with the tokens of demo-lm.")
    page.get_by_test_id("model").click()
    page.get_by_role("option", name=re.compile("tiny-gpt2")).click()
    expect(about).to_contain_text("Prompts with the tokens of tiny-gpt2 with random weights.")
    expect(page.get_by_test_id("start-run")).to_be_enabled()


@pytest.mark.parametrize("what", ["scenario", "trace"])
def test_a_file_that_is_no_recording_is_refused_in_words_and_starts_nothing(
    page: Page, tmp_path: Path, what: str
) -> None:
    bad = {
        "empty.csv": (b"", "empty.csv: "),
        "wrong.csv": (b"time,rate\n1,2\n", "wrong.csv: "),
        "binary.bin": (bytes(range(256)) * 20, "binary.bin: is not UTF-8 text."),
        "large.csv": (b"1\n" * 4_100_000, "large.csv is larger than 8 MB: take a part of it"),
    }
    page.goto("/runs/new")
    if what == "scenario":
        page.get_by_test_id("section-scenario").click()
    else:
        choose_pattern(page, "^As in a file")
    for name, (data, sentence) in bad.items():
        (tmp_path / name).write_bytes(data)
        choose(page, what, tmp_path / name)
        expect(page.get_by_test_id(f"{what}-error")).to_contain_text(sentence)
    if what == "trace":
        expect(page.get_by_test_id("start-run")).to_be_disabled()
