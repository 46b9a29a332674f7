"""The Redis Stream of a run's latest batches of events, which only the present owner of the run may write."""

from __future__ import annotations

from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from engine.domain.stored import SCHEMA, upgrade_events_text
from webapp.base.redis import client
from webapp.jobs.lease import Lost, Ownership

KEEP_S = 600
"""How long the stream of a finished run stays, for readers that are in the middle of it."""
KEEP_FENCE_S = 7 * 24 * 3600

APPEND = """
local known = redis.call('GET', KEYS[2])
if known and tonumber(known) > tonumber(ARGV[1]) then return 'lost' end
if not known and ARGV[2] == '0' then return 'unknown' end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[3])
if ARGV[4] ~= '' then redis.call('XADD', KEYS[1], ARGV[4], 'events', ARGV[5], 'schema', ARGV[6]) end
return 'added'
"""
"""KEYS: the stream, its fence. ARGV: the writer's number, whether the database has just vouched for the
writer, seconds to keep the fence, the entry's id ("" adds nothing), its events, their schema. It is one step
for Redis: nobody else writes between check and entry.
"""


class Batch(NamedTuple):
    """A batch of a run's events. `events` is the text of a JSON array, in the present version of events."""

    number: int
    events: str


class Unknown(Exception):
    """Raised if Redis knows no owner of this run: it restarted empty. Ask the database, then say
    `vouched`.
    """


def stream_of(run_id: int) -> str:
    return f"run:{run_id}"


def fence_of(run_id: int) -> str:
    return f"run:{run_id}:fence"


def append(owner: Ownership, batch: Batch, vouched: bool) -> None:
    """Add a batch; one that was added before, but whose answer was lost, is not added again.

    Raises `Lost`, `Unknown` (never if `vouched`) and Redis' errors.
    """
    try:
        _run(owner, vouched, f"{batch.number}-0", batch.events)
    except ResponseError as error:
        if "equal or smaller" not in str(error):
            raise


def take(owner: Ownership) -> None:
    """Let no former owner append from now on. Raises `Lost` and Redis' errors."""
    _run(owner, vouched=True)


def _run(owner: Ownership, vouched: bool, entry: str = "", events: str = "") -> None:
    keys = [stream_of(owner.id), fence_of(owner.id)]
    answer: Any = client().eval(
        APPEND, len(keys), *keys, owner.fence, int(vouched), KEEP_FENCE_S, entry, events, SCHEMA
    )
    if answer == "lost":
        raise Lost(owner)
    if answer == "unknown":
        raise Unknown


def batches(run_id: int, since: int) -> list[Batch]:
    """Batches after `since` that are in the stream now. Raises Redis' errors."""
    entries: Any = client().xrange(stream_of(run_id), min=f"({since}-0")
    return [batch_of(entry) for entry in entries]


def last_added(run_id: int) -> int:
    """The number of the newest batch in the stream; 0 if there is none. Raises Redis' errors."""
    entries: Any = client().xrevrange(stream_of(run_id), count=1)
    return batch_of(entries[0]).number if entries else 0


def batch_of(entry: tuple[str, dict[str, str]]) -> Batch:
    entry_id, fields = entry
    text = upgrade_events_text(fields["events"], int(fields["schema"]))
    return Batch(int(entry_id.partition("-")[0]), text)


def cut(run_id: int, stored: int) -> None:
    """Remove the batches before number `stored`. Raises Redis' errors."""
    client().xtrim(stream_of(run_id), minid=f"{stored}-0")


def expire(run_id: int) -> None:
    """Let Redis remove a stream after a while, to which nothing more is added. Raises Redis' errors."""
    client().expire(stream_of(run_id), KEEP_S)
