"""The advice answers the engineer's question as published, for five clusters."""

import pytest

from bench.published.questions import QUESTIONS, ask
from topologies.published import published_rates

RATES = {row.id: row for row in published_rates()}
ASKED = {
    "r003": ("single", "gpipe", "megatron"),
    "r011": ("single", "gpipe", "megatron"),
    "r017": ("single", "gpipe", "megatron"),
    "r314": ("single", "gpipe", "megatron"),
    "r081": (
        "single",
        "gpipe",
    ),  # ten boards and eighty layers: one method is enough to say that they hold it
}
"""Row of several boards → the strategies that are asked; `./loom bench questions` asks all."""
FEW = {"r003", "r314"}
LATER = pytest.mark.long("engine", "topologies", "bench/published")


@pytest.mark.parametrize("row", [pytest.param(row, marks=[] if row in FEW else LATER) for row in ASKED])
def test_the_advice_says_yes_where_several_boards_were_faster_and_no_where_not(row):
    question = next(question for question in QUESTIONS if question.several == row)
    asked = ask(question, ASKED[row])
    if question.one:
        faster = RATES[row].decode_tokens_per_s > RATES[question.one].decode_tokens_per_s
        assert asked.answer.yes is faster, asked.answer.sentence
    else:
        assert "fits no single device" in asked.answer.sentence, asked.answer.sentence
    assert asked.right


def test_the_questions_have_both_answers_and_five_clusters():
    several = [RATES[question.several] for question in QUESTIONS]
    assert len({(row.device, row.nodes) for row in several}) >= 5
    ones = [(RATES[q.one], row) for q, row in zip(QUESTIONS, several, strict=True) if q.one]
    assert {row.decode_tokens_per_s > one.decode_tokens_per_s for one, row in ones} == {True, False}
    assert all((one.runtime, one.model) == (row.runtime, row.model) for one, row in ones)
