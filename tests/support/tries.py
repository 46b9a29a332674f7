"""Measurements that other work of this host can only make worse, tried until one shows what is measured.

A busy host makes a transfer slower and a message later, and nothing faster or earlier. So the best of several
tries is the network's own figure, and one that is too good is wrong in any try.
"""

from collections.abc import Callable
from typing import TypeVar

FEWEST, MOST = 3, 40
"""Tries: at least so many, to see a figure that is too good; at most so many until one is good enough."""

Result = TypeVar("Result")


def tries(measure: Callable[[], Result], done: Callable[[list[Result]], bool]) -> list[Result]:
    """The results of a measurement that is repeated until they are enough, or nobody believes in more."""
    found: list[Result] = []
    while len(found) < FEWEST or not (done(found) or len(found) >= MOST):
        found.append(measure())
    return found


def largest(measure: Callable[[], float], enough: float) -> float:
    """The largest of several tries, until one is `enough`."""
    return max(tries(measure, lambda found: max(found) >= enough))


def least(measure: Callable[[], float], enough: float) -> float:
    """The least of several tries, until one is as small as `enough`."""
    return min(tries(measure, lambda found: min(found) <= enough))
