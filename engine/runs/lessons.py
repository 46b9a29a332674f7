"""What runs that were not valid taught about this machine: the dilation that others like them need.

`auto` knows what this machine can do alone. Beside other work it can do less, which only a run finds out: its
verdict recommends a dilation. The next run like it, by strategy, model and number of devices, begins there.
"""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.domain.cache_directory import cache_directory
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.values import NonNegative, Positive, Value
from engine.worlds.real.dilation import step_up

KEPT_S = 1800.0
"""How long a lesson counts: the other work on a machine comes and goes."""
MOST = 100
"""Lessons that are kept."""
MOST_TIMES = 8.0
"""No lesson raises a dilation to more than so many times: a run that was held up for a moment asks for as
much as if it had been so all the time, and whoever comes next would wait for nothing. Measured on
200 emulated points of four methods beside a load of 8 to 26 on two cores: runs asked for up to 44 times, 123
points were valid at eight times, 15 were repeated, and then all 200 were valid.
"""


class Lesson(Value):
    """A run whose dilation by itself is `chosen` and that recommends `needed`; it lasts `virtual_s` by its
    prediction. `learnt_s` is in seconds since 1970.
    """

    strategy: str
    model: str
    devices: int
    chosen: Positive
    needed: Positive
    virtual_s: NonNegative
    learnt_s: float


LESSONS = TypeAdapter(tuple[Lesson, ...])


def lessons_file() -> Path:
    """The file of lessons, beside the table of this host's kernels, by which `auto` chooses."""
    return cache_directory() / "lessons.json"


def raised(spec: RunSpec, chosen: float, trace: Sequence[Span | Mark]) -> float:
    """`chosen`, or what lessons of runs like `spec` raise it to; `trace` is its prediction.

    A lesson is carried over in the milder of two ways: as a factor, where this machine is slower at all that
    the run does, or as wall seconds, where it loses a certain time, of which a longer run loses the same.
    """
    found = [chosen]
    virtual_s = _end_s(trace)
    for lesson in _fresh(time.time()):
        if (lesson.strategy, lesson.model, lesson.devices) == _kind(spec):
            by_factor = chosen * min(MOST_TIMES, lesson.needed / lesson.chosen)
            by_time = lesson.needed * lesson.virtual_s / virtual_s if virtual_s else math.inf
            found.append(min(by_factor, by_time))
    return chosen if max(found) == chosen else step_up(max(found))


def learn(spec: RunSpec, chosen: float, needed: float, trace: Sequence[Span | Mark]) -> None:
    """Keep that `spec`, for which `chosen` is the dilation by itself, needs `needed`: if that is more."""
    if needed <= chosen:
        return
    now_s = time.time()
    strategy, model, devices = _kind(spec)
    lesson = Lesson(
        strategy=strategy,
        model=model,
        devices=devices,
        chosen=chosen,
        needed=needed,
        virtual_s=_end_s(trace),
        learnt_s=now_s,
    )
    path = lessons_file()
    with contextlib.suppress(OSError):  # where the cache cannot be written, nothing is learnt
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{uuid.uuid4().hex}")
        draft.write_bytes(LESSONS.dump_json((*_fresh(now_s), lesson)[-MOST:]))
        draft.replace(path)


def _fresh(now_s: float) -> tuple[Lesson, ...]:
    try:
        known = LESSONS.validate_json(lessons_file().read_bytes())
    except (OSError, ValidationError):  # absent, or written by another version
        return ()
    return tuple(lesson for lesson in known if 0 <= now_s - lesson.learnt_s < KEPT_S)


def _kind(spec: RunSpec) -> tuple[str, str, int]:
    return spec.strategy, spec.model.name, len(spec.cluster.workers)


def _end_s(trace: Sequence[Span | Mark]) -> float:
    return max((item.end_s if isinstance(item, Span) else item.time_s for item in trace), default=0.0)
