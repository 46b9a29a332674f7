"""A worker's part of calibrating its machine: it begins when somebody wants it, and ends when nobody does."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Protocol

from engine.domain.errors import Cancelled
from webapp.base.redis import REDIS_ERRORS, why_away
from webapp.jobs import calibration
from webapp.jobs.calibration import Calibrating

ASK_S = 0.5
"""Seconds between two looks at whether it is still wanted."""

logger = logging.getLogger(__name__)


class Measure(Protocol):
    """Waits until no run goes on here, measures, and keeps the result."""

    def __call__(self, *, progress: Any, check: Any, begun: Any) -> object:
        """Measure this machine, as `calibrate_host` of the emulator."""


class MachineCalibration:
    """The calibration of this worker's machine, from any thread: one at a time."""

    def __init__(self) -> None:
        self._alone = threading.Lock()
        self._ending = threading.Event()
        self._what = ""
        self._about_s = 0.0
        self._began: float | None = None
        self._failure = ""

    def carry_out(self, worker: str, about_s: float, measure: Measure) -> None:
        """Calibrate if somebody wants that of `worker` and it is not under way. Raises Redis' errors before
        it has begun.
        """
        if not calibration.is_wanted(worker) or not self._alone.acquire(blocking=False):
            return
        watch = Wanted(worker, self._ending)
        self._about_s, self._began, self._failure = about_s, None, ""
        self._what = "waiting for this machine's turn"
        try:
            measure(progress=self._progress, check=watch.check, begun=self._begun)
            watch.withdraw()
        except Cancelled as stopped:  # somebody may want one again by now
            logger.info("calibrating %s: %s", worker, stopped)
        except Exception as error:
            logger.exception("calibrating %s failed", worker)
            self._failure = str(error)
            watch.withdraw()
        finally:
            self._what = ""
            self._alone.release()

    def _progress(self, what: str) -> None:
        self._what = what

    def _begun(self) -> None:
        self._what, self._began = "starting", time.monotonic()

    def now(self) -> dict[str, Any]:
        """Fields of the announcement: what goes on, and why the last one that was asked for failed."""
        began, what = self._began, self._what
        elapsed_s = None if began is None else round(time.monotonic() - began, 1)
        going_on = Calibrating(what=what, about_s=self._about_s, elapsed_s=elapsed_s) if what else None
        return {"calibrating": going_on, "calibration_failure": self._failure}

    def end(self) -> None:
        """Stop it because the worker is to end."""
        self._ending.set()


class Wanted:
    """Whether one calibration is still to go on. `check` is called several times a second."""

    def __init__(self, worker: str, ending: threading.Event):
        self.worker = worker
        self.ending = ending
        self.asked_at = time.monotonic()

    def check(self) -> None:
        """Stop the calibration if nobody wants it any more: raises `Cancelled`. While Redis does not answer,
        nobody can call it off.
        """
        if self.ending.is_set():
            raise Cancelled("The worker ends.")
        if time.monotonic() - self.asked_at < ASK_S:
            return
        self.asked_at = time.monotonic()
        try:
            wanted = calibration.is_wanted(self.worker)
        except REDIS_ERRORS:
            return
        if not wanted:
            raise Cancelled("It was cancelled.")

    def withdraw(self) -> None:
        """Take the wish back, as it is over. Without Redis the key stays, and the machine is calibrated once
        more.
        """
        try:
            calibration.call_off(self.worker)
        except REDIS_ERRORS as error:
            logger.warning("calibrating %s is over, and Redis %s", self.worker, why_away(error))
