"""What a report says in words: sentences for a person, and the effect of every change of the cluster."""

from __future__ import annotations

from engine.domain.values import Value


class ChangeEffect(Value):
    """A change of the cluster, and what it did to the time of a token.

    `what` is a noun phrase: "the delay of 20 ms on a–b". The times are medians over the tokens before and
    after it, s; None where no token came on one side (`engine/reports/effects.py`).
    """

    at_s: float
    what: str
    before_s: float | None = None
    after_s: float | None = None
    worst_s: float | None = None


class Finding(Value):
    """What is worth saying of a report: `sentences` in the order of their importance, `changes` in that of
    their times.
    """

    sentences: tuple[str, ...] = ()
    changes: tuple[ChangeEffect, ...] = ()
