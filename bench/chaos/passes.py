"""Compares what the devices of two runs did, forward pass by forward pass: a disturbed run and its replay.

Faults meet the two runs at different moments of a pass, so totals differ. A pass that both have completed
under the same plan costs every device the same operations, FLOPs and bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from engine.domain.scenario import Change, JoinDevice
from engine.domain.trace import Mark, Span

MARK_OF = {
    "drop_device": "device_lost",
    "freeze_device": "device_frozen",
    "join_device": "device_joined",
    "slow_device": "device_changed",
    "link_down": "link_down",
    "link_up": "link_up",
}
"""The mark of a change, by its kind; other changes of links give `link_changed`."""


class Pass(NamedTuple):
    """A completed pass: the number of plans before its own, the devices that had failed, request, token, and
    whether it is the first pass of its request under this plan, which is over all tokens so far.
    """

    plan: int
    failed: frozenset[str]
    request: int
    token: int
    is_first: bool


class Work(NamedTuple):
    """What one device did in one pass: operations and their FLOPs, bytes that it has sent."""

    operations: int = 0
    flops: int = 0
    sent_bytes: int = 0


Passes = Mapping[Pass, Mapping[str, Work | None]]
"""Forward pass → device → what it did; None where that is not known."""


def passes_of(trace: Iterable[Span | Mark]) -> dict[Pass, dict[str, Work | None]]:
    """The completed passes of a run, each with the work of every device that took part in it.

    What a device did under the plan during which it failed is unknown: its last spans are lost with it. So is
    the work of all devices in the last pass before a failure, because sends to the failed device end early.
    """
    completed: dict[Pass, dict[str, Work | None]] = {}
    for plan in _plans(trace):
        completed |= plan
    return completed


def _plans(trace: Iterable[Span | Mark]) -> Iterator[dict[Pass, dict[str, Work | None]]]:
    """The completed passes under each plan of a run."""
    failed, number, began_s = frozenset[str](), 0, 0.0
    plan = _UnderOnePlan(number)
    for item in sorted(trace, key=_time_s):
        if isinstance(item, Span):
            if item.start_s >= began_s:  # else what was on its way when the plan before this one ended
                plan.add(item)
        elif item.name == "replanned":
            yield plan.completed(blurred=True)
            number, began_s = number + 1, item.time_s
            plan = _UnderOnePlan(number)
        elif item.name == "loss_detected":
            failed |= {item.device}
            plan.lose(item.device)
        elif item.name == "device_joined":
            failed -= {item.device}
        elif item.name in ("token_emitted", "request_finished"):
            plan.complete(item.facts["request"], item.facts.get("index", 0), failed)
    yield plan.completed(blurred=False)


class _UnderOnePlan:
    """Collects the passes under one plan."""

    def __init__(self, number: int):
        self.number = number
        self.work: dict[tuple[int, int], dict[str, Work]] = defaultdict(dict)
        self.keys: dict[tuple[int, int], Pass] = {}
        self.lost: set[str] = set()
        self.blurred: set[tuple[int, int]] = set()

    def add(self, span: Span) -> None:
        of_pass = self.work[span.request, span.token]
        of_pass[span.device] = _more(of_pass.get(span.device, Work()), span)

    def lose(self, device: str) -> None:
        self.lost.add(device)
        self._blur_last()

    def _blur_last(self) -> None:
        """Leave out what the last pass of every request cost."""
        self.blurred |= set({request: (request, token) for request, token in self.keys}.values())

    def complete(self, request: int, token: int, failed: frozenset[str]) -> None:
        if (request, token) not in self.keys and (request, token) in self.work:
            is_first = all(request != other for other, _ in self.keys)
            self.keys[request, token] = Pass(self.number, failed, request, token, is_first)

    def completed(self, blurred: bool) -> dict[Pass, dict[str, Work | None]]:
        """The passes; `blurred`: a failure or a join has ended this plan."""
        if blurred:
            self._blur_last()
        return {key: self._work_of(at) for at, key in self.keys.items()}

    def _work_of(self, at: tuple[int, int]) -> dict[str, Work | None]:
        unknown = self.lost | (self.work[at].keys() if at in self.blurred else set())
        return {**self.work[at], **dict.fromkeys(unknown)}


def _time_s(item: Span | Mark) -> float:
    """When an item counts: a pass may end at the time at which a device's last span of it ends."""
    return item.end_s if isinstance(item, Span) else item.time_s


def _more(work: Work, span: Span) -> Work:
    if span.kind == "compute":
        return work._replace(operations=work.operations + 1, flops=work.flops + span.flops)
    return work._replace(sent_bytes=work.sent_bytes + span.bytes * (span.kind == "send"))


def unequal(real: Passes, replayed: Passes) -> list[str]:
    """One sentence per pass that both runs have and that cost a device something else."""
    found = []
    for key in sorted({*real} & {*replayed}, key=_order):
        for device in sorted({*real[key], *replayed[key]}):
            did, expected = (passes[key].get(device, Work()) for passes in (real, replayed))
            if did is not None and expected is not None and did != expected:
                found.append(f"{_name(key)}: {device} did {_text(did)}; predicted are {_text(expected)}")
    return found


def unmatched(real: Passes, replayed: Passes) -> list[str]:
    """One sentence per pass that only one of the runs has."""
    where = {True: "not in the prediction", False: "only in the prediction"}
    return [f"{_name(key)}: {where[key in real]}" for key in sorted({*real} ^ {*replayed}, key=_order)]


def _order(key: Pass) -> tuple[int, int, int]:
    return key.plan, key.request, key.token


def _name(key: Pass) -> str:
    return f"token {key.token} of request {key.request} under plan {key.plan}"


def _text(work: Work) -> str:
    return f"{work.operations} operations, {work.flops} FLOP, {work.sent_bytes} B sent"


def as_it_happened(changes: Iterable[Change], trace: Iterable[Span | Mark]) -> tuple[Change, ...]:
    """`changes`, which a real run applied in this order, at the times at which they took effect, in order.

    That is the time of their marks in its `trace`. A device that joins has an effect when its process has
    started, which takes wall time that no prediction knows: when the others ended their work for a new plan.
    """
    items = list(trace)
    marks = iter([(at, item) for at, item in enumerate(items) if isinstance(item, Mark)])
    happened = []
    for change in changes:
        name = MARK_OF.get(change.kind, "link_changed")
        device, link = getattr(change, "device", ""), getattr(change, "link", "")
        for at, mark in marks:
            if mark.name == name and mark.device == device and mark.facts.get("link", "") == link:
                joins = isinstance(change, JoinDevice)
                at_s = _planned_in_s(mark, items[at + 1 :]) if joins else mark.time_s
                happened.append(change.model_copy(update={"at_s": at_s}))
                break
    return tuple(sorted(happened, key=lambda change: change.at_s))


def _planned_in_s(joined: Mark, after: Iterable[Span | Mark]) -> float:
    """When the old plan ended because of a device that had `joined`: the end of the last work under it.

    The time of `joined` if no plan was made for it before something else happened to the device.
    """
    last_s = joined.time_s
    for item in after:
        if isinstance(item, Span):
            last_s = max(last_s, item.end_s)
        elif item.name == "replanned" and joined.device in _joined_in(item):
            return min(last_s, item.time_s)
        elif item.device == joined.device and item.name in MARK_OF.values():
            break
    return joined.time_s


def _joined_in(replanned: Mark) -> list[str]:
    """The devices whose joining was the reason of a new plan: "a, b joined at 1.000 s." """
    names, joined, _ = str(replanned.facts.get("reason", "")).partition(" joined at ")
    return names.split(", ") if joined else []
