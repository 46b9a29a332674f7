"""Errors of the web application: subclasses of the engine's `EdgeLoomError`, with their HTTP status.

EdgeLoomError
├── SpecError 422, PlanError 409, HostError 409, RunError 409   (engine/domain/errors.py)
├── Conflict     409  the request does not fit the present state
└── Unavailable  503  Redis or a worker is not there
"""

from __future__ import annotations

from engine.domain.errors import EdgeLoomError


class Conflict(EdgeLoomError):
    """Another person changed it first, or the run is not in the state that the request needs."""


class Unavailable(EdgeLoomError):
    """Redis or a worker does not answer."""
