"""When changes come that are timed by parts of the run or by tokens, by its calm prediction. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.errors import SpecError
from engine.domain.scenario import Change, Scenario
from engine.domain.trace import Mark, Span


def timed(scenario: Scenario, calm: Sequence[Span | Mark]) -> Scenario:
    """`scenario` with every time in seconds, in their order; `calm` is the trace of the run without changes.

    Raises `SpecError` for a change after a token that is the last, or that the run does not have.
    """
    marks = [item for item in calm if isinstance(item, Mark)]
    tokens_s = sorted(mark.time_s for mark in marks if mark.name == "token_emitted")
    end_s = max(
        (mark.time_s for mark in marks if mark.name in ("token_emitted", "request_finished")), default=0.0
    )
    changes = [
        change.model_copy(
            update={"at_s": _at_s(index, change, tokens_s, end_s), "at_frac": None, "after_token": None}
        )
        for index, change in enumerate(scenario.changes)
    ]
    return Scenario(changes=tuple(sorted(changes, key=lambda change: change.at_s)))


def _at_s(index: int, change: Change, tokens_s: Sequence[float], end_s: float) -> float:
    if change.at_frac is not None:
        return change.at_frac * end_s
    if change.after_token is None:
        return change.at_s
    number = change.after_token
    if number >= len(tokens_s):
        raise SpecError(
            f"scenario, changes[{index}].after_token: is {number}, and the run has {len(tokens_s)} tokens, "
            "after the last of which nothing happens: give less, or ask for more tokens."
        )
    return (tokens_s[number - 1] + tokens_s[number]) / 2
