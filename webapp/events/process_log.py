"""What the processes of a run's devices wrote: lines among the run's events."""

from __future__ import annotations

from collections.abc import Sequence

from ninja import Schema
from pydantic import Field

from engine.domain.errors import SpecError
from engine.domain.events import EVENTS, ProcessLogged
from webapp.events import archive

MOST_LINES = 10_000
SCANNED_CHARS = 40_000_000
"""How much of a run's events one request reads: a long run has few lines in many events."""


class LogQuery(Schema):
    device: str | None = Field(default=None, description="Only the lines of this device.")
    since: int = Field(
        default=0, ge=0, le=2**63 - 1, description="The `cursor` of the answer before; 0: from the first."
    )
    limit: int = Field(
        default=1000, ge=1, le=MOST_LINES, description="An answer ends with the event that fills it."
    )


class LogLine(Schema):
    device: str
    time_s: float = Field(description="Virtual time; 0 before the start.")
    text: str


class ProcessLogOut(Schema):
    lines: list[LogLine]
    cursor: int = Field(description="Ask for what follows with `since`.")
    more: bool = Field(description="Whether there are events behind the cursor now.")


def process_log(run_id: int, devices: Sequence[str], query: LogQuery) -> ProcessLogOut:
    """Lines of a run on these `devices`, in the order of their events.

    Raises `SpecError` for an unknown device, and Redis' errors while the run is not archived.
    """
    if query.device not in (None, *devices):
        sentence = f"device is {query.device!r}, expected one of the run's devices: {', '.join(devices)}."
        raise SpecError(sentence, [("device", "not in the run's cluster")])
    lines: list[LogLine] = []
    cursor, scanned = query.since, 0
    for batch in archive.history(run_id, query.since):
        if len(lines) >= query.limit or scanned >= SCANNED_CHARS:
            return ProcessLogOut(lines=lines, cursor=cursor, more=True)
        cursor, scanned = batch.number, scanned + len(batch.events)
        if '"process_log"' in batch.events:  # most batches have none: reading them as JSON takes long
            lines += _lines_of(batch.events, query.device)
    return ProcessLogOut(lines=lines, cursor=cursor, more=False)


def _lines_of(events: str, device: str | None) -> list[LogLine]:
    return [
        LogLine(device=event.device, time_s=event.time_s, text=text)
        for event in EVENTS.validate_json(events)
        if isinstance(event, ProcessLogged) and device in (None, event.device)
        for text in event.lines
    ]
