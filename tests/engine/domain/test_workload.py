"""How many requests of a workload are in work at once: plans keep memory for that many."""

from typing import Any

import pytest

from engine.domain.errors import SpecError
from engine.domain.workload import Workload


@pytest.mark.parametrize(
    ("fields", "together"),
    [
        ({"requests": 5}, 1),
        ({"requests": 5, "pattern": "bursty"}, 5),
        ({"requests": 5, "pattern": "poisson", "rate_per_s": 1.0}, 1),
        ({"requests": 5, "pattern": "poisson", "rate_per_s": 1.0, "max_batch": 3}, 3),
        ({"requests": 2, "pattern": "poisson", "rate_per_s": 1.0, "max_batch": 3}, 2),
        ({"requests": 2, "pattern": "users", "users": 2, "max_batch": 8}, 2),
        ({"requests": 9, "pattern": "serve", "max_batch": 4}, 4),
    ],
)
def test_no_more_requests_are_in_work_at_once_than_come_and_may_be_served_together(
    fields: dict[str, Any], together: int
) -> None:
    assert Workload.parse({"prompt_tokens": 4, "new_tokens": 2, **fields}, "test").together == together


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 11}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": 1, "top_p": 0}, "top_p"),
        ({"temperature": 1, "top_p": 1.1}, "top_p"),
        ({"temperature": 1, "top_k": -1}, "top_k"),
        ({"top_p": 0.9}, "temperature is 0: give a temperature"),
        ({"temperature": 1, "new_tokens": 0}, "no token is drawn"),
    ],
)
def test_a_way_to_draw_tokens_that_cannot_be_is_refused(given, says):
    with pytest.raises(SpecError, match=says):
        Workload.parse({"prompt_tokens": 4} | given, "test")


def test_who_draws_at_random_says_so_and_who_does_not_stores_nothing_of_it():
    drawn = Workload(prompt_tokens=4, temperature=0.7, top_p=0.9, top_k=40)
    assert drawn.drawn_words == "sampled at T=0.7, top-p 0.9, top-k 40"
    assert Workload.parse(drawn.model_dump(mode="json"), "test") == drawn
    assert not {"temperature", "top_p", "top_k"} & Workload(prompt_tokens=4).model_dump().keys()
