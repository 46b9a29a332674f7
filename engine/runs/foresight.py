"""Predicts the rest of a run after every change that was not known before its start, while the run goes on.

A process of the lowest priority computes it, so that the devices keep their processors. One computes at a
time: changes that come meanwhile are predicted together by the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.domain.errors import EdgeLoomError
from engine.domain.events import Logged, RestPredicted
from engine.domain.network import Actual
from engine.domain.report import FromHereOn
from engine.domain.scenario import Change, Scenario
from engine.runs.active_run import ActiveRun
from engine.runs.as_measured import as_measured, changes_as_given
from engine.runs.children import kill
from engine.runs.predict import Prepared, decisions_in
from engine.runs.predictions import from_here_on, played_again

LOWEST_PRIORITY = 19


class _Process(NamedTuple):
    pid: int
    answer: int
    """The end of a pipe from which its answer is read."""


class Foresight:
    """Predicts the rest of a run while it goes on, in a process of its own.

    `upcoming` gives the changes of the scenario that are not due yet; `release` closes, in the process that
    computes, what it inherits of the devices; `actual` is what stands in place of what was drawn. `made` has
    all predictions so far.
    """

    def __init__(
        self,
        run: ActiveRun,
        upcoming: Callable[[], Sequence[Change]],
        release: Callable[[], None] = lambda: None,
        actual: Callable[[], Actual | None] = lambda: None,
    ):
        self.run, self.upcoming, self.release, self.actual = run, upcoming, release, actual
        self.prepared = Prepared(run.spec, run.requests, run.plan)
        self.made: list[FromHereOn] = []
        self._process: _Process | None = None
        self._text = b""
        self._asked = 0

    def check(self) -> None:
        """Read an answer that has come, and begin with changes that nobody has predicted yet."""
        if self._process is not None:
            self._read(self._process)
        if self._process is None and (unknown := self._not_known_before()) > self._asked:
            self._asked = unknown
            self._process = self._begin()

    def close(self) -> None:
        """End what still computes: the run is over."""
        if self._process is not None:
            kill(self._process.pid)
            self._end(self._process)

    def _not_known_before(self) -> int:
        planned = self.run.spec.scenario.changes
        return sum(change not in planned for change in self.run.applied)

    def _begin(self) -> _Process:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                self.release()
                os.nice(2 * LOWEST_PRIORITY)  # from the highest, too
                with os.fdopen(writing, "w") as answer:
                    answer.write(self._computed())
            finally:
                os._exit(0)
        os.close(writing)
        os.set_blocking(reading, False)
        return _Process(pid, reading)

    def _computed(self) -> str:
        """The event as JSON, or why there is none; runs in the process of its own."""
        run = self.run
        changes: tuple[Change, ...] = (*run.applied, *self.upcoming())
        prepared, actual = self.prepared, self.actual()
        if actual is not None:
            drawn = run.spec.cluster
            changes = changes_as_given(changes, drawn, actual)
            measured = run.spec.model_copy(update={"cluster": as_measured(drawn, actual)})
            prepared = prepared._replace(spec=measured)
        try:
            found = played_again(prepared, Scenario(changes=changes), decisions_in(run.trace))
        except Exception as error:  # whatever it is: the run goes on without this prediction
            return json.dumps({"error": str(error) if isinstance(error, EdgeLoomError) else repr(error)})
        if found is None:
            return ""
        if found.report.outcome.kind != "finished":
            return json.dumps({"error": found.report.outcome.sentence})
        rest = from_here_on(found, run.trace, run.now_s, len(run.applied))
        return RestPredicted(**rest.model_dump(), requests=found.report.requests).model_dump_json()

    def _read(self, process: _Process) -> None:
        try:
            while part := os.read(process.answer, 1 << 20):
                self._text += part
        except BlockingIOError:
            return
        text, self._text = self._text.decode(), b""
        self._end(process)
        if not text:
            return
        answer = json.loads(text)
        if "error" in answer:
            why = f"This run is not predicted from here on: {answer['error']}"
            self.run.emit(Logged(level="warning", text=why))
            return
        event = RestPredicted.model_validate(answer)
        self.made.append(event.prediction)
        self.run.emit(event)

    def _end(self, process: _Process) -> None:
        self._process = None
        os.close(process.answer)
        os.waitpid(process.pid, 0)
