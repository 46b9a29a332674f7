"""A child that runs and does not answer is ended once, and a slow start is no silence."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from webapp.ops import health
from webapp.ops.health import MISSES, HealthWatch
from webapp.ops.supervisor import Child


class Silent(Child):
    sent: list[signal.Signals]
    waited: float = 0.0

    def waited_s(self) -> float:
        return self.waited

    def send(self, number: signal.Signals) -> None:
        self.sent.append(number)


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Silent:
    monkeypatch.setattr(health, "echo", lambda line: None)
    made = Silent("web", (), Path("web.log"), {}, lambda: True)
    made.sent, made.process = [], object()  # type: ignore[assignment]
    return made


def looks(watch: HealthWatch, answers: str) -> list[Any]:
    """What has been sent to the child, after each answer (`.`) or none (`x`)."""
    found = []
    for answer in answers:
        watch.answers = lambda answer=answer: answer == "."
        watch.look()
        found.append(len(watch.child.sent))
    return found


def test_a_child_that_answered_and_is_silent_for_long_is_killed_once(child: Silent) -> None:
    watch = HealthWatch(child, lambda: True)
    assert looks(watch, "." + "x" * (MISSES - 1)) == [0] * MISSES
    assert looks(watch, "x" * 20) == [1] * 20
    assert child.sent == [signal.SIGKILL]


def test_one_answer_forgives_what_was_missed(child: Silent) -> None:
    assert set(looks(HealthWatch(child, lambda: True), ("." + "x" * (MISSES - 1)) * 5)) == {0}


def test_a_process_that_has_just_been_started_may_be_silent(child: Silent) -> None:
    watch = HealthWatch(child, lambda: True)
    assert set(looks(watch, "x" * 50)) == {0}
    looks(watch, ".")
    child.process = object()  # type: ignore[assignment]
    assert set(looks(watch, "x" * 50)) == {0}
    assert looks(watch, "." + "x" * MISSES)[-1] == 1


def test_a_process_that_gets_no_core_is_not_taken_for_one_that_hangs(
    child: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine of ten seconds it waits for a core: a process in its place would, too."""
    now_s = 0.0
    monkeypatch.setattr(health.time, "monotonic", lambda: now_s)
    watch = HealthWatch(child, lambda: True)
    looks(watch, ".")
    for _ in range(5 * MISSES):
        now_s += 10.0
        child.waited += 9.0
        assert looks(watch, "x") == [0]
    for _ in range(MISSES):
        now_s += 10.0
        looks(watch, "x")
    assert child.sent == [signal.SIGKILL], "it had a core, and was silent"
