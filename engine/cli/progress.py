"""Show the progress of a run on standard error, from its events: a bar on a terminal, else plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from engine.domain.events import AttemptBegun, ChangeRefused, Event, Logged, RequestRefused, StateChanged
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.units import human, human_s


class RunProgress:
    """A context manager; feed it one event (`event`) or a batch (`events`) at a time."""

    def __init__(self, spec: RunSpec, stream: TextIO | None = None):
        self.stream = stream or sys.stderr
        self.expected_tokens = spec.workload.requests * max(1, spec.workload.new_tokens)
        self.tokens = 0
        self.bar: Progress | None = None
        self.task = TaskID(0)
        if self.stream.isatty():
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TimeElapsedColumn(),
                console=Console(file=self.stream),
                transient=True,
            )
            self.task = self.bar.add_task("starting", total=self.expected_tokens)

    def __enter__(self) -> RunProgress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.bar:
            self.bar.stop()

    def events(self, batch: Iterable[Event]) -> None:
        for event in batch:
            self.event(event)

    def event(self, event: Event) -> None:
        if isinstance(event, Mark) and event.name == "token_emitted":
            self.tokens += 1
            if self.bar:
                self.bar.update(self.task, completed=self.tokens)
        if isinstance(event, AttemptBegun):
            self.tokens = 0
        if self.bar and isinstance(event, StateChanged):
            words = describe(event) if event.state == "queued" else event.state
            self.bar.update(self.task, description=words, completed=self.tokens)
        line = describe(event)
        if line and not self.bar:
            self.stream.write(line + "\n")
            self.stream.flush()
        elif line and self.bar and not isinstance(event, StateChanged):
            self.bar.console.print(line, markup=False, highlight=False)


def describe(event: Event) -> str:
    """An event as one line for a person, or "" for events that are not worth one."""
    match event:
        case StateChanged():
            return f"{event.state}: {event.detail}" if event.detail else event.state
        case AttemptBegun():
            return event.words
        case Logged(level="warning" | "error"):
            return f"{event.level}: {event.text}"
        case ChangeRefused():
            return f"change refused: {event.reason}"
        case RequestRefused():
            return f"request refused: {event.reason}"
        case Mark():
            return _describe_mark(event)
    return ""


def _describe_mark(mark: Mark) -> str:
    facts, at = mark.facts, f"{mark.time_s:.3f} s"
    match mark.name:
        case "token_emitted":
            shown = facts.get("text") or facts.get("token")
            where = f"request {facts.get('request', 0)} token {facts.get('index', 0)}"
            after = f" after {human_s(facts['latency_s'])}" if "latency_s" in facts else ""
            return f"{at} {where}: {shown!r}{after}"
        case "classified":
            best = facts["classes"][0]
            named = best.get("label") or f"class {best['index']}"
            return f"{at} request {facts['request']}: {named} ({best['probability']:.0%})"
        case "link_changed":
            return f"{at} {facts['link']} {facts.get('direction', 'both')} set to {_link_value(facts)}"
        case "link_down" | "link_up":
            return f"{at} {facts.get('link')} is {mark.name.removeprefix('link_')}"
        case "device_changed":
            return f"{at} {mark.device} takes {facts['factor']:g} times as long"
        case "device_lost":
            return f"{at} {mark.device} failed"
        case "device_frozen" | "device_joined" as name:
            return f"{at} {mark.device} {name.removeprefix('device_')}"
        case "loss_detected":
            return f"{at} the failure of {mark.device} is detected ({facts.get('how', 'killed')})"
        case "replanned":
            return f"{at} planned again: {facts['reason']}"
    return ""


def _link_value(facts: dict[str, Any]) -> str:
    if "delay_s" in facts:
        return f"a delay of {human_s(facts['delay_s'])}"
    if "jitter_s" in facts:
        return f"a jitter of {human_s(facts['jitter_s'])}"
    if "loss_frac" in facts:
        return f"a loss of {facts['loss_frac']:.2%}"
    return human(facts["bit_per_s"], "bit/s")
