"""What a trial of boards calls wrong."""

from __future__ import annotations

import pytest

from bench.nodes.faults import FAULTS, problems_of, trial

LOST = {"outcome": {"sentence": "d1 failed at 0.3 s."}}


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"status": "finished", "report": {"correctness": {"token_identical": True}}}, []),
        (
            {"status": "finished", "report": {"correctness": {"token_identical": False}}},
            ["tokens are right: F"],
        ),
        ({"status": "finished", "report": {}}, ["tokens are right: None"]),
        ({"status": "failed", "report": LOST}, []),
        ({"status": "failed", "error": "The worker of this run ended."}, ["no report"]),
        ({"status": "failed", "report": {"outcome": {}}}, ["no sentence"]),
        ({"status": "failed", "report": {"outcome": {"sentence": "KeyError: 3."}}}, ["a programmer's"]),
    ],
)
def test_a_run_ends_with_the_right_tokens_or_with_a_report_and_a_sentence(run, words) -> None:
    found = problems_of(run)
    assert len(found) == len(words) and all(word in one for word, one in zip(words, found, strict=True))


def test_trials_are_repeatable_and_have_every_fault_in_turn() -> None:
    trials = [trial(1, number) for number in range(len(FAULTS))]
    assert trials == [trial(1, number) for number in range(len(FAULTS))]
    assert {one.fault for one in trials} == set(FAULTS)
