"""A worker and its jobs: the next one begins while the outputs of the last are compared, one at a time."""

import threading
from collections.abc import Callable

import pytest

from webapp.jobs.comparing import Comparisons, HandOver

pytestmark = pytest.mark.timeout(60)  # one that is never let go would hang


def comparing_until(over: threading.Event) -> Callable[[HandOver], None]:
    def work(hand_over: HandOver) -> None:
        hand_over()
        hand_over()  # it is told again and again how far the comparison is
        over.wait()

    return work


def test_the_next_job_begins_while_one_is_compared_and_a_second_comparison_keeps_the_worker() -> None:
    comparisons, over, second_over = Comparisons(), threading.Event(), threading.Event()
    comparisons.carry_out(comparing_until(over))  # it returns although the job is not over
    second = threading.Thread(target=comparisons.carry_out, args=(comparing_until(second_over),))
    second.start()
    second.join(0.2)
    assert second.is_alive()
    second_over.set()
    second.join()
    over.set()
    comparisons.wait()
    comparisons.carry_out(comparing_until(over))  # the first one has let the next be compared
    comparisons.wait()


def test_a_job_that_breaks_lets_its_worker_go_on() -> None:
    comparisons = Comparisons()

    def breaks(hand_over: HandOver) -> None:
        hand_over()
        raise ValueError("broken")

    comparisons.carry_out(breaks)
    comparisons.wait()
    over = threading.Event()
    comparisons.carry_out(comparing_until(over))  # returns: no comparison counts as going on
    over.set()
    comparisons.wait()
