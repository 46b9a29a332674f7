"""A calibration that somebody asked of a worker's machine: wanted as long as its Redis key is there.

What becomes of it the worker says in its announcement, which ends with the worker: nothing stays under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.domain.values import Value
from webapp.base.redis import client

KEPT_S = 24 * 3600
"""A worker that ends leaves its key behind; nobody else has its identity."""


class Calibrating(Value):
    """A calibration under way: what is being measured or waited for, for how long it measures by now, and how
    long that takes in all. `elapsed_s` is None while it waits.
    """

    what: str
    about_s: float
    elapsed_s: float | None = None

    @property
    def left_s(self) -> float:
        return max(0.0, self.about_s - (self.elapsed_s or 0.0))


def ask(worker: str, by: str) -> bool:
    """Want a calibration of this worker's machine; whether nobody else did. Raises Redis' errors."""
    return bool(client().set(key_of(worker), by, ex=KEPT_S, nx=True))


def call_off(worker: str) -> bool:
    """Want none any longer, which stops one under way; whether one was wanted. Raises Redis' errors."""
    return bool(client().delete(key_of(worker)))


def is_wanted(worker: str) -> bool:
    """Whether somebody has asked this worker to calibrate its machine. Raises Redis' errors."""
    return bool(client().exists(key_of(worker)))


def wanted(workers: Sequence[str]) -> set[str]:
    """The ones of `workers` whose machines somebody wants calibrated. Raises Redis' errors."""
    found: Any = client().mget([key_of(worker) for worker in workers]) if workers else []
    return {worker for worker, by in zip(workers, found, strict=True) if by is not None}


def key_of(worker: str) -> str:
    return f"calibrate:{worker}"
