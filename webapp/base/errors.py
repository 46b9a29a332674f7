"""Errors of the web application: subclasses of the engine's `EdgeLoomError`, with their HTTP status.

EdgeLoomError
├── SpecError 422, PlanError 409, HostError 409, RunError 409   (engine/domain/errors.py, with all others)
├── Conflict     409  the request does not fit the present state
├── TooMany      429  a person has sent more than their share
└── Unavailable  503  Redis or a worker is not there
"""

from __future__ import annotations

import math

from engine.domain.errors import EdgeLoomError


class Conflict(EdgeLoomError):
    """The request does not fit the present state: another person was first, or the run is in
    another state.
    """


class TooMany(EdgeLoomError):
    """A person has asked for more than their share; `retry_s` says when asking again may help."""

    def __init__(self, sentence: str, retry_s: float):
        super().__init__(sentence)
        self.retry_s = max(1, math.ceil(retry_s))


class Unavailable(EdgeLoomError):
    """Redis, or a worker, does not answer; `retry_s` says when it may, if something is about to start."""

    def __init__(self, sentence: str, retry_s: int | None = None):
        super().__init__(sentence)
        self.retry_s = retry_s
