"""How many requests of a workload are in work at once: plans keep memory for that many."""

from typing import Any

import pytest

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
