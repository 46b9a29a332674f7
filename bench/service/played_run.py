"""A run whose worker is a thread: it publishes as many events as are asked for, and obeys changes of links.

The events are those of a prediction, over and over, each time of another request: spans, tokens, memory,
links and clock, in the mix that a real run has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from queue import Empty
from typing import Any

from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone

from engine.domain.events import ClockTicked, Event, LinkSample, LinksSampled, PlanMade, StateChanged
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.stored import to_document
from engine.domain.trace import Mark, Span
from engine.runs.predict import predict
from webapp.events.publisher import Publisher
from webapp.jobs.lease import end, owner_of
from webapp.runs.control import CommandFeed
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest, spec_of

BEAT_S = 0.04
"""A session sends its events as often (`emulator/session/server.py`)."""
LEASE_EVERY_S = 2.0


class PlayedRun:
    """A run that is running while the `with` block lasts. `published` is how many events it has sent.

    `began_s` is the time since the epoch at which its clock shows 0: every beat ends with a clock event.
    """

    def __init__(self, owner: User, request: RunRequest, events_per_s: float):
        events: list[Event] = []
        self.spec: RunSpec = spec_of(request)
        self.report: RunReport = predict(self.spec, events.append)
        self.trace = [event for event in events if isinstance(event, Span | Mark)]
        self.length_s = max(event.end_s if isinstance(event, Span) else event.time_s for event in self.trace)
        self.events_per_s = events_per_s
        self.virtual_per_wall = events_per_s * self.length_s / len(self.trace)
        self.owner, self.request = owner, request
        self.run = self._stored()
        self.published = 0
        self.began_s = 0.0
        self.place = 0
        self.down: set[str] = set()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _stored(self) -> Run:
        dilation = 1 / self.virtual_per_wall
        return Run.objects.create(
            name="played",
            owner=self.owner,
            status="running",
            started_at=timezone.now(),
            lease_until=end(),
            worker="bench",
            cluster_name=self.spec.cluster.name,
            model=self.spec.model.name,
            strategy=self.spec.strategy,
            request=to_document(self.request),
            spec=to_document(self.spec.model_copy(update={"dilation": dilation})),
            plan=to_document(self.report.plan) if self.report.plan else None,
        )

    def __enter__(self) -> PlayedRun:
        self.publisher = Publisher(owner_of(self.run))
        self.publisher.__enter__()
        self.commands = CommandFeed(self.run.pk, self.publisher)
        self.commands.__enter__()
        first: list[Event] = [StateChanged(state="running")]
        if self.report.plan:
            first.insert(0, PlanMade.of(self.report.plan))
        self._publish(first)
        self.began_s = time.time()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join()
        self.commands.__exit__()
        self.publisher.__exit__()

    def publish_at_once(self, count: int) -> None:
        """Publish `count` events without a pause, all of them stored when this returns."""
        while self.published < count:
            self._publish(self._next(1000))
        self.publisher.flush()

    def go_on(self) -> None:
        """Publish at the rate from now on."""
        self.began_s = time.time() - self._virtual_s() / self.virtual_per_wall
        self.thread.start()

    def finish(self) -> None:
        """Stop, and end the run."""
        self.stopping.set()
        self.thread.join()
        Run.objects.filter(pk=self.run.pk).update(status="cancelled", finished_at=timezone.now())
        self._publish([StateChanged(state="cancelled", detail="The benchmark is over.")])
        self.publisher.flush()

    def _virtual_s(self) -> float:
        rounds, place = divmod(self.place, len(self.trace))
        return self.length_s * (rounds + place / len(self.trace))

    def _work(self) -> None:
        due_s, renewed_s = time.monotonic(), time.monotonic()
        owed = 0.0
        while not self.stopping.wait(max(0.0, due_s - time.monotonic())):
            due_s += BEAT_S
            owed += self.events_per_s * BEAT_S
            others = [*self._changes(), *self._clock_and_links()]
            count = max(1, int(owed) - len(others))
            owed -= count + len(others)
            self._publish([*self._next(count), *others])
            if time.monotonic() - renewed_s > LEASE_EVERY_S:
                renewed_s = time.monotonic()
                Run.objects.filter(pk=self.run.pk).update(lease_until=end())
        connections.close_all()

    def _publish(self, events: Sequence[Event]) -> None:
        self.publisher.publish(events)
        self.published += len(events)

    def _next(self, count: int) -> list[Event]:
        found: list[Event] = []
        for _ in range(count):
            rounds, place = divmod(self.place, len(self.trace))
            found.append(repeated(self.trace[place], rounds, self.length_s))
            self.place += 1
        return found

    def _clock_and_links(self) -> list[Event]:
        """The clock and the links, as a supervisor sends them."""
        now_s = self._virtual_s()
        links = tuple(
            LinkSample(
                link=number,
                forward=forward,
                up=f"{link.a}--{link.b}" not in self.down,
                bit_per_s=link.bit_per_s * (0.5 + 0.4 * (self.place % 7) / 7),
                set_bit_per_s=link.bit_per_s,
                measured_bit_per_s=None,
            )
            for number, link in enumerate(self.spec.cluster.links)
            for forward in (True, False)
        )
        wall_s = time.time() - self.began_s
        return [LinksSampled(time_s=now_s, links=links), ClockTicked(time_s=now_s, wall_s=wall_s)]

    def _changes(self) -> list[Event]:
        """What commands have changed: at once, as nothing has to be shaped."""
        marks: list[Event] = []
        while True:
            try:
                command: dict[str, Any] = self.commands.queue.get_nowait()
            except Empty:
                return marks
            if command["kind"] == "link_down":
                self.down.add(command["link"])
            elif command["kind"] == "link_up":
                self.down.discard(command["link"])
            name = command["kind"] if command["kind"] in ("link_down", "link_up") else "link_changed"
            facts = {key: value for key, value in command.items() if key not in ("kind",)}
            marks.append(Mark(self._virtual_s(), name, "", facts))


def repeated(event: Span | Mark, times: int, length_s: float) -> Span | Mark:
    """The same of a later request: that many times `length_s` later."""
    by_s = times * length_s
    if isinstance(event, Span):
        request = event.request if event.request < 0 else event.request + times
        return replace(event, start_s=event.start_s + by_s, end_s=event.end_s + by_s, request=request)
    facts = event.facts
    if "request" in facts:
        facts = {**facts, "request": facts["request"] + times}
    return replace(event, time_s=event.time_s + by_s, facts=facts)
