"""What a run that was not valid recommends raises the dilation of the next run like it."""

from __future__ import annotations

import pytest

from engine.domain.trace import Span
from engine.models import catalogue
from engine.runs import lessons
from tests.support.small_cases import spec_of, star

MODEL, _ = catalogue.resolve("tiny-gpt2", "random")
SPEC = spec_of("gpipe", MODEL, star((1e8, 1e8)))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def lasting(seconds):
    return [Span("d0", "compute", "op", 0, 0.0, seconds)]


def test_nothing_is_known_at_first():
    assert lessons.raised(SPEC, 1.75, lasting(1.0)) == 1.75


def test_a_run_that_said_raise_to_twelve_and_a_half_raises_the_next_one_like_it():
    lessons.learn(SPEC, 1.75, 12.5, lasting(1.0))
    assert lessons.raised(SPEC, 1.75, lasting(1.0)) == 12.5


def test_a_run_ten_times_as_long_loses_the_same_wall_seconds():
    """Needed were 12.5 wall seconds for 1 s; for 10 s they are a dilation of 1.25, less than without."""
    lessons.learn(SPEC, 1.75, 12.5, lasting(1.0))
    assert lessons.raised(SPEC, 1.75, lasting(10.0)) == 1.75
    assert lessons.raised(SPEC, 1.75, lasting(5.0)) == 2.5


def test_a_shorter_run_is_raised_by_the_factor_alone():
    """A machine that is twice as slow needs twice the dilation; by wall seconds it would be twenty times."""
    lessons.learn(SPEC, 2.0, 4.0, lasting(1.0))
    assert lessons.raised(SPEC, 3.0, lasting(0.1)) == 6.0


def test_the_largest_of_several_lessons_counts():
    for needed in (4.0, 8.0, 6.0):
        lessons.learn(SPEC, 2.0, needed, lasting(1.0))
    assert lessons.raised(SPEC, 2.0, lasting(1.0)) == 8.0


def test_a_recommendation_that_is_no_more_than_chosen_teaches_nothing():
    lessons.learn(SPEC, 8.0, 6.0, lasting(1.0))
    assert lessons.raised(SPEC, 2.0, lasting(1.0)) == 2.0


@pytest.mark.parametrize(
    "other",
    [
        SPEC.model_copy(update={"strategy": "megatron"}),
        SPEC.model_copy(update={"model": MODEL.model_copy(update={"name": "another"})}),
        spec_of("gpipe", MODEL, star((1e8, 1e8, 1e8))),
    ],
    ids=["strategy", "model", "devices"],
)
def test_runs_that_are_not_alike_learn_nothing_from_each_other(other):
    lessons.learn(SPEC, 1.75, 12.5, lasting(1.0))
    assert lessons.raised(other, 1.75, lasting(1.0)) == 1.75


def test_a_run_that_was_held_up_for_a_moment_does_not_slow_the_next_one_without_bound():
    lessons.learn(SPEC, 2.0, 160.0, lasting(1.0))
    assert lessons.raised(SPEC, 2.0, lasting(1.0)) == 16.0


def test_after_half_an_hour_a_lesson_is_forgotten(monkeypatch):
    lessons.learn(SPEC, 1.75, 12.5, lasting(1.0))
    now_s = lessons.time.time()
    monkeypatch.setattr(lessons.time, "time", lambda: now_s + lessons.KEPT_S)
    assert lessons.raised(SPEC, 1.75, lasting(1.0)) == 1.75


def test_a_file_that_cannot_be_read_is_no_lesson():
    lessons.lessons_file().parent.mkdir(parents=True)
    lessons.lessons_file().write_text("{")
    assert lessons.raised(SPEC, 1.75, lasting(1.0)) == 1.75
