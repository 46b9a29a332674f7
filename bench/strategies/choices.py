"""A task with right answers: which of several texts follows a prompt, the one that is the likeliest by a
strategy's numbers. Chance finds one in as many as there are texts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch

from bench.strategies.score import Window
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.models.inputs.text import encode

Logits = Callable[[Sequence[Window]], torch.Tensor]
"""What a strategy gives at every token of the continuations of windows that are equally long."""


class Question(NamedTuple):
    """Token ids of a prompt and of the texts of which `choices[answer]` really follows it."""

    prompt: tuple[int, ...]
    choices: tuple[tuple[int, ...], ...]
    answer: int


def asked_of(windows: Sequence[Window], choices: int) -> tuple[Question, ...]:
    """One question per window: its own continuation among those of other windows. Always the same ones."""
    random, found = Random(0), []
    for index, window in enumerate(windows):
        others = [other.continuation for at, other in enumerate(windows) if at != index]
        offered = random.sample(others, choices - 1)
        answer = random.randrange(choices)
        offered.insert(answer, window.continuation)
        found.append(Question(window.prompt, tuple(offered), answer))
    return tuple(found)


def read_questions(path: Path, spec: RunSpec) -> tuple[Question, ...]:
    """Questions from a file of JSON lines: `{"prompt": "…", "choices": ["…", "…"], "answer": 0}`.

    Raises `SpecError` with the line that is none.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            prompt, choices, answer = row["prompt"], row["choices"], range(len(row["choices"]))[row["answer"]]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise SpecError(
                f"{path}, line {number}: is no question ({type(error).__name__}: {error}): expected an "
                "object with prompt, choices, and the number of the right one as answer."
            ) from error
        ids = [encode(spec.model, spec.weights, choice, add_special_tokens=False) for choice in choices]
        found.append(Question(encode(spec.model, spec.weights, prompt), tuple(ids), answer))
    if not found:
        raise SpecError(f"{path}: has no questions: expected one JSON object a line.")
    return tuple(found)


def share_right(questions: Sequence[Question], logits: Logits) -> float:
    """The share of questions whose right text has the largest mean log-likelihood per token."""
    alike: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for at, question in enumerate(questions):
        for choice, text in enumerate(question.choices):
            alike[len(question.prompt), len(text)].append((at, choice))
    likelihood: dict[tuple[int, int], float] = {}
    for places in alike.values():
        windows = [Window(questions[at].prompt, questions[at].choices[choice]) for at, choice in places]
        truth = torch.tensor([window.continuation for window in windows])
        own = logits(windows).log_softmax(dim=-1).gather(-1, truth[..., None])[..., 0].mean(dim=-1)
        likelihood |= dict(zip(places, own.tolist(), strict=True))
    right = 0
    for at, question in enumerate(questions):
        best = max(range(len(question.choices)), key=lambda choice: likelihood[at, choice])
        right += best == question.answer
    return right / len(questions)
