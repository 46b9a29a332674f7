"""Timed changes of a real run: how long the supervisor may wait before it must apply the next one."""

from math import inf

import pytest

from engine.runs.changes import PRECISE_S, TICK_S, poll_timeout_s


@pytest.mark.parametrize(
    ("due_in_s", "timeout_s"),
    [
        (inf, TICK_S),
        (1.0, TICK_S),
        (TICK_S, TICK_S - PRECISE_S),
        (0.01, 0.01 - PRECISE_S),
        (PRECISE_S, 0.0),
        (0.0, 0.0),
        (-0.5, 0.0),
    ],
)
def test_waiting_for_messages_ends_before_the_next_timed_change_is_due(due_in_s, timeout_s):
    assert poll_timeout_s(due_in_s) == pytest.approx(timeout_s)
