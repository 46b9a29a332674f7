"""The task of lossy methods: which of several texts follows a prompt."""

import json

import pytest
import torch
from transformers import GPT2LMHeadModel

from bench.strategies.accuracy import CHOICES
from bench.strategies.choices import Question, asked_of, read_questions, share_right
from bench.strategies.score import Window, held_out_windows, logits_of
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.models import catalogue
from engine.models.inputs.text import encode
from topologies.files import load


def spec_of(strategy, **params):
    model, weights = catalogue.resolve("demo-lm", None)
    return RunSpec(cluster=load("lab-4"), model=model, weights=weights, strategy=strategy, params=params)


WINDOWS = [Window((at, at + 1), (at + 2, at + 3)) for at in range(40)]


def test_every_window_asks_for_its_own_continuation_among_those_of_others() -> None:
    questions = asked_of(WINDOWS, CHOICES)
    assert questions == asked_of(WINDOWS, CHOICES), "always the same ones"
    for window, question in zip(WINDOWS, questions, strict=True):
        assert question.prompt == window.prompt
        assert question.choices[question.answer] == window.continuation
        assert len(set(question.choices)) == CHOICES
    assert {question.answer for question in questions} == set(range(CHOICES))


def likely(tokens):
    """Logits under which exactly `tokens` are likely, wherever they stand."""
    return lambda windows: torch.stack(
        [torch.stack([torch.eye(8)[list(tokens)].sum(0)] * len(window.continuation)) for window in windows]
    )


def test_the_likeliest_text_per_token_is_the_answer_also_where_texts_are_of_other_lengths() -> None:
    questions = [
        Question((1,), ((2, 3), (4, 5)), 0),
        Question((1, 1), ((4, 5), (2, 3)), 0),
        Question((1,), ((2, 2, 2), (4,)), 0),
    ]
    assert share_right(questions, likely({2, 3})) == pytest.approx(2 / 3)
    assert share_right(questions, likely({4, 5})) == pytest.approx(1 / 3)


def test_a_lossless_strategy_answers_as_transformers_does() -> None:
    spec = spec_of("megatron")
    questions = asked_of(held_out_windows(spec, 6, 24, 4), 3)
    torch.set_num_threads(1)
    model = GPT2LMHeadModel.from_pretrained(spec.weights.directory)
    right = 0
    for question in questions:
        means = []
        for text in question.choices:
            ids = torch.tensor([question.prompt + text])
            with torch.inference_mode():
                logits = model(ids).logits[0, len(question.prompt) - 1 : -1].log_softmax(-1)
            means.append(float(logits.gather(-1, torch.tensor(text)[:, None]).mean()))
        right += means.index(max(means)) == question.answer
    assert share_right(questions, lambda windows: logits_of(spec, windows)) == right / len(questions)


def test_questions_of_a_file_are_its_lines_in_tokens(tmp_path) -> None:
    spec = spec_of("single")
    file = tmp_path / "boolq.jsonl"
    file.write_text(json.dumps({"prompt": "Is it?", "choices": [" yes", " no"], "answer": 1}) + "\n")
    (question,) = read_questions(file, spec)
    assert question.answer == 1
    assert question.prompt == encode(spec.model, spec.weights, "Is it?")
    assert question.choices[0] == encode(spec.model, spec.weights, " yes", add_special_tokens=False)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("no json", "line 1: is no question"),
        ('{"prompt": "a", "choices": ["b"]}', "KeyError: 'answer'"),
        ('{"prompt": "a", "choices": ["b"], "answer": 1}', "IndexError"),
        ("", "has no questions"),
    ],
)
def test_what_is_no_question_is_said_with_its_line(tmp_path, line, says) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(line)
    with pytest.raises(SpecError, match=says):
        read_questions(file, spec_of("single"))
