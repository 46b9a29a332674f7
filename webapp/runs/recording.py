"""Records an emulation: publishes its events, stores its states, keeps its report or why there is none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from engine.domain.errors import EdgeLoomError, RunError
from engine.domain.events import Event, Logged, ReportMade, StateChanged, is_only_compared
from engine.domain.report import Outcome, RunReport
from engine.runs.predict import outcome_of
from webapp.base.redis import REDIS_ERRORS
from webapp.events.publisher import Publisher
from webapp.jobs import lease, storage
from webapp.jobs.intake import want_prediction
from webapp.jobs.models import OVER
from webapp.runs import closing, services
from webapp.runs.models import Run

logger = logging.getLogger(__name__)


def publisher_of(owner: lease.Ownership) -> Publisher:
    """The publisher of a run, once Redis answers: it may have stopped since this worker asked it who else is
    there. Raises `Lost`.
    """
    with lease.Renewal(owner, lambda: None):
        publisher = storage.keep_trying(lambda: Publisher(owner), errors=(*storage.ERRORS, *REDIS_ERRORS))
    publisher.log.begin()
    return publisher


def outcome_of_failure(run: Run, error: Exception) -> Outcome:
    if isinstance(error, RunError):  # stopped while it waited for its turn, or the emulation itself died
        return outcome_of(error)
    if isinstance(error, EdgeLoomError):
        return Outcome(kind="failed", sentence=str(error))
    logger.error("run %s broke", run.pk, exc_info=error)
    return Outcome(kind="failed", sentence=f"The emulator broke: {error!r}. The worker's log says more.")


class Watch:
    """Publishes the emulator's events, and stores states as the run's status.

    The events of its end are left out: `keep` and `give_up` publish them once the database has the end.
    `hand_over` is called when only the run's outputs are left to be compared.
    """

    def __init__(
        self, owner: lease.Ownership, publisher: Publisher, hand_over: Callable[[], None] = lambda: None
    ):
        self.owner = owner
        self.publisher = publisher
        self.hand_over = hand_over
        self.has_begun = False

    def __call__(self, events: list[Event]) -> None:
        passed = [event for event in events if not is_ending(event)]
        for event in passed:
            if isinstance(event, StateChanged):
                self.has_begun |= event.state != "queued"
                self._store(event)
        self.publisher.publish(passed)
        if any(map(is_only_compared, passed)):
            self.hand_over()

    def _store(self, event: StateChanged) -> None:
        """A state that cannot be stored now is among the events, and the next one may be stored."""
        try:
            services.progress(self.owner, event.state, event.detail)
        except storage.ERRORS as error:
            storage.report(error)


def is_ending(event: Event) -> bool:
    return isinstance(event, ReportMade) or (isinstance(event, StateChanged) and event.state in OVER)


def keep(owner: lease.Ownership, publisher: Publisher, report: RunReport) -> None:
    """Store the report of a run and publish that it has ended. Raises `Lost`."""
    publisher.flush()
    status = storage.keep_trying(lambda: closing.finish(owner, report))
    ended = StateChanged(state=status, detail=report.outcome.sentence)
    publisher.publish([ended, ReportMade.of(report)])
    # Nothing was predicted before the start if no host was calibrated then.
    if not lease.owned(owner).filter(prediction__isnull=False).exists():
        with suppress(*REDIS_ERRORS):  # the report is kept all the same
            want_prediction(owner.id)


def put_back(owner: lease.Ownership, publisher: Publisher) -> bool:
    """Let a run that has only waited be queued again, for another worker; False if somebody has cancelled it.

    Raises `Lost`.
    """
    publisher.publish([StateChanged(state="queued", detail="Its worker ended before the run began.")])
    publisher.flush()
    publisher.lets_go = storage.keep_trying(lambda: closing.queue_again(owner))
    return publisher.lets_go


def give_up(owner: lease.Ownership, publisher: Publisher, outcome: Outcome) -> None:
    """Close a run that has no report, and add the outcome to its events."""
    publisher.flush()
    try:
        storage.keep_trying(lambda: closing.end(owner, outcome))
    except lease.Lost as lost:
        logger.warning("%s", lost)
        return
    log = Logged(level="error", text=outcome.sentence)
    ended = StateChanged(state=closing.status_of(outcome), detail=outcome.sentence)
    publisher.publish([log, ended])
