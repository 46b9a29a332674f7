"""The events of a run: everything that a run reports while it goes on, as one discriminated union.

A device process sends spans and marks to the supervisor, which adds the run's state, clock and links. The
emulation sends them all in batches to the worker, the worker to Redis, and Redis to the browser. Every step
uses the types below. In JSON, `type` is the discriminator (`kind` is a span's own field), and the fields of a
plan or a report stand beside it. The TypeScript types of the browser are generated from this union.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from engine.domain.plan import Plan
from engine.domain.report import FromHereOn, RequestReport, RunReport
from engine.domain.trace import Mark, Span
from engine.domain.values import Value

RunState = Literal[
    "queued",
    "planning",
    "building",
    "calibrating",
    "loading",
    "running",
    "verifying",
    "finished",
    "failed",
    "cancelled",
]
"""The steps of a run in their order, then the three ways in which it can end."""


class StateChanged(Value):
    """The run has entered `state`; `ahead` is the number of runs that must end before a queued one starts."""

    type: Literal["state"] = "state"
    state: RunState
    detail: str = ""
    ahead: int | None = Field(default=None, exclude_if=lambda ahead: ahead is None)


class AttemptBegun(Value):
    """The run begins again, at another dilation: what its events said of the attempts before does not count.

    `number` is 2 for the second attempt. `words` say so for a person, and why.
    """

    type: Literal["attempt"] = "attempt"
    number: int
    dilation: float
    words: str = ""


class ClockTicked(Value):
    """The run's virtual time, and the wall seconds since its start.

    `silent_s` has the devices whose process has sent nothing for longer than it should, and since how many
    wall seconds: it is frozen, swaps or hangs.
    """

    type: Literal["clock"] = "clock"
    time_s: float
    wall_s: float
    silent_s: dict[str, float] = Field(default_factory=dict, exclude_if=lambda silent_s: not silent_s)


class LinkSample(Value):
    """One direction of a link: payload rate in use, rate asked for, capacity last measured. Virtual bit/s."""

    link: int
    forward: bool
    up: bool
    bit_per_s: float
    set_bit_per_s: float
    measured_bit_per_s: float | None


class LinksSampled(Value):
    """The links at virtual time `time_s`."""

    type: Literal["links"] = "links"
    time_s: float
    links: tuple[LinkSample, ...]


class Logged(Value):
    """A log message that the pages and the command line show."""

    type: Literal["log"] = "log"
    level: Literal["info", "warning", "error"]
    text: str


class ProcessLogged(Value):
    """Lines that the process of `device` wrote, at virtual time `time_s`; 0 before the start."""

    type: Literal["process_log"] = "process_log"
    device: str
    time_s: float
    lines: tuple[str, ...]


class ChangeRefused(Value):
    """A live change could not be made; `reason` is a sentence. The run goes on as before."""

    type: Literal["change_refused"] = "change_refused"
    reason: str


class RequestRefused(Value):
    """A request that somebody sent was not taken; `id` is the sender's name for it, `reason` a sentence.

    busy: too many wait now, and the same request may be taken later. field: what of it is to blame, "prompt"
    or "new_tokens".
    """

    type: Literal["request_refused"] = "request_refused"
    id: str
    reason: str
    busy: bool = False
    field: str = ""


class RestPredicted(FromHereOn):
    """The run was predicted from here on; `requests` are all of it as that simulation has them."""

    type: Literal["rest_predicted"] = "rest_predicted"
    requests: tuple[RequestReport, ...]

    @property
    def prediction(self) -> FromHereOn:
        """The prediction alone, as reports keep it."""
        return FromHereOn.model_construct(**{name: getattr(self, name) for name in FromHereOn.model_fields})


class PlanMade(Plan):
    """The plan that the run starts with."""

    type: Literal["plan"] = "plan"

    @classmethod
    def of(cls, plan: Plan) -> PlanMade:
        return cls.model_construct(**dict(plan))


class ReportMade(RunReport):
    """The run's report: its last event."""

    type: Literal["report"] = "report"

    @classmethod
    def of(cls, report: RunReport) -> ReportMade:
        return cls.model_construct(**dict(report))

    @property
    def report(self) -> RunReport:
        """The report alone, without `type`."""
        return RunReport.model_construct(**{name: getattr(self, name) for name in RunReport.model_fields})


TraceItem = Annotated[Span | Mark, Field(discriminator="type")]
Event = Annotated[
    Span
    | Mark
    | StateChanged
    | AttemptBegun
    | ClockTicked
    | LinksSampled
    | Logged
    | ProcessLogged
    | ChangeRefused
    | RequestRefused
    | RestPredicted
    | PlanMade
    | ReportMade,
    Field(discriminator="type"),
]

# A fact may be infinite: Python's `json` writes and reads it as Infinity, which strict JSON lacks.
_NUMBERS = ConfigDict(ser_json_inf_nan="constants")
TRACE: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem], config=_NUMBERS)
EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event], config=_NUMBERS)


def is_only_compared(event: Event) -> bool:
    """Whether it says that the run's clock has ended: from here on its outputs are compared."""
    return isinstance(event, StateChanged) and event.state == "verifying"


def of_last_attempt(events: Sequence[Event]) -> Sequence[Event]:
    """Those after the newest `AttemptBegun`: all, of a run that began once."""
    begun = [place for place, event in enumerate(events) if isinstance(event, AttemptBegun)]
    return events[begun[-1] + 1 :] if begun else events


def to_json(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Plain data for a message or a file that has other keys beside its events."""
    data: list[dict[str, Any]] = EVENTS.dump_python(list(events), mode="json")
    return data


def to_json_text(events: Sequence[Event]) -> str:
    """A JSON array on one line."""
    return EVENTS.dump_json(list(events)).decode()
