"""Errors of the web application, below the engine's tree: one sentence each, and an HTTP status.

EdgeLoomError
├── SpecError 422, PlanError 409, HostError 409, RunError 409   (engine/errors.py)
├── Conflict     409  what was asked does not fit the present state
└── Unavailable  503  Redis or a worker is not there
"""

from __future__ import annotations

from engine.domain.errors import EdgeLoomError


class Conflict(EdgeLoomError):
    """Somebody else was faster, or the run is in another state than the request supposes."""


class Unavailable(EdgeLoomError):
    """Redis or a worker does not answer."""
