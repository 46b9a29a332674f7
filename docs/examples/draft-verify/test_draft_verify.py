"""Draft and verify: the contract, Leviathan's sum of tokens, and a draft model that misses nothing."""

import pytest
from draft_verify import DraftVerify

import edgeloom
from edgeloom.testing import check_strategy


@pytest.mark.parametrize("length", [1, 4])
def test_it_keeps_the_contract(length):
    check_strategy(DraftVerify, {"draft_length": length})


def test_a_verification_gives_as_many_tokens_as_the_paper_says():
    """Equation 1 has (1 - a^(k + 1)) / (1 - a), with the drafted token that follows."""
    asked = {"prompt_tokens": 16, "new_tokens": 400, "draft_model": "gpt2", "likely_acceptance": 0.6}
    report = edgeloom.predict("orin-3", "gpt2-medium", DraftVerify(draft_length=3), **asked)
    expected = (1 - 0.6**4) / (1 - 0.6)
    assert report["accepted_per_verification"] + 1 == pytest.approx(expected, rel=0.1)


def test_a_model_that_drafts_for_itself_is_always_right():
    """In each round, also after a draft that was accepted as a whole: its KV cache has the right tokens."""
    report = edgeloom.run(
        "lab-3",
        "demo-lm",
        DraftVerify(draft_length=3),
        world="loopback",
        draft_model="demo-lm",
        prompt="The with statement is used to",
        new_tokens=24,
    )
    assert report.correctness.ok, report.correctness.why
    assert report["accepted_frac"] == 1
