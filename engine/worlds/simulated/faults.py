"""What happens to the cluster of a simulated world: its scenario, and who learns of a loss when.

A killed device is missed when its connections close, a frozen one or one behind a link that is down when it
has been silent for `silence_s`, and only by those that need it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.domain.errors import PeerLost
from engine.domain.scenario import Change, DropDevice, FreezeDevice, JoinDevice, LinkChange, LinkDown
from engine.domain.trace import Mark
from engine.worlds.common.device import takes_part
from engine.worlds.simulated.network import Message

if TYPE_CHECKING:
    from engine.worlds.simulated.world import SimulatedWorld

FATE = -1
"""Priority of these events: they outlast the programs that they befall."""
KILL_SEEN_S = 0.01
"""How long a killed process's peers need to see their connections closed."""


class Joined(Exception):
    """A device has joined: all devices stop, and go on with it."""


class Fate:
    """`dead` ranks run no more, `frozen` ones (since when) say nothing."""

    def __init__(self, world: SimulatedWorld):
        self.world = world
        self.cluster = world.spec.cluster
        self.silence_s = world.spec.silence_s
        self.dead: set[int] = set()
        self.frozen: dict[int, float] = {}
        self.unsent: list[Message] = []
        self.cut_s = 0.0
        self.goes_on = False

    def begin(self, goes_on: bool) -> None:
        """`goes_on`: whether a run plans again after a loss, and for a device that joins."""
        self.goes_on = goes_on
        for change in self.world.spec.scenario.changes:
            self.world.schedule(change.at_s, lambda change=change: self._apply(change), FATE)  # type: ignore[misc]

    def watch(self) -> None:
        """Under a new plan, frozen devices may be needed that were not before."""
        for rank in self.frozen.keys() - self.dead:
            self._watch_frozen(rank)

    def miss(self) -> bool:
        """Nothing can happen any more: if devices are frozen, somebody will find that out."""
        silent = self.frozen.keys() - self.dead
        for rank in silent:
            self.world.schedule(
                self.world.now_s + self.silence_s,
                partial(self._give_up, rank),
                FATE,
            )
        return bool(silent)

    def check_reach(self) -> None:
        """Of two devices that a link keeps apart, one is lost to the other: not the source."""
        stalled = self.world.wires.stalled()
        if stalled:
            src, dst = stalled[0].ends
            rank = dst if src == self.cluster.source_rank else src
            self._end(rank)
            self._all_lose(rank, "unreachable", self.cut_s)

    def _apply(self, change: Change) -> None:
        world = self.world
        for device in world.devices:
            device.change(change)
        match change:
            case DropDevice():
                self._drop(self.cluster.rank(change.device))
            case FreezeDevice():
                self._freeze(self.cluster.rank(change.device))
            case JoinDevice():
                self._join(self.cluster.rank(change.device))
            case _:
                facts = change.model_dump(exclude={"kind", "at_s"})
                by_value = {"slow_device": "device_changed", "link_down": "link_down", "link_up": "link_up"}
                name = by_value.get(change.kind, "link_changed")
                world.emit(Mark(world.now_s, name, facts.get("device", ""), facts))
                if isinstance(change, LinkChange):
                    world.wires.change(change)
                if isinstance(change, LinkDown):
                    self.cut_s = world.now_s
                    world.schedule(world.now_s + self.silence_s, self.check_reach, FATE)

    def _happened(self, name: str, rank: int) -> None:
        self.world.emit(Mark(self.world.now_s, name, self.cluster.devices[rank].name))

    def _drop(self, rank: int) -> None:
        """The process is gone at once; others know when they have seen its connections closed."""
        self._happened("device_lost", rank)
        self._end(rank)
        at_s = self.world.now_s
        self.world.schedule(at_s + KILL_SEEN_S, lambda: self._all_lose(rank, "killed", at_s), FATE)

    def _freeze(self, rank: int) -> None:
        self._happened("device_frozen", rank)
        self.frozen[rank] = self.world.now_s
        self._watch_frozen(rank)

    def _watch_frozen(self, rank: int) -> None:
        since_s = self.frozen[rank]
        due_s = self.world.now_s + self.silence_s
        self.world.schedule(due_s, lambda: self._give_up_frozen(rank, since_s), FATE)

    def _give_up_frozen(self, rank: int, since_s: float) -> None:
        """A device that was silent too long is given up, unless it has spoken again or nobody needs it."""
        asked = any(rank in device.message_numbers for device in self.world.devices)
        needed = asked or takes_part(self.cluster, self.world.plan, rank)
        if needed and self.frozen.get(rank) == since_s:
            self._give_up(rank)

    def _give_up(self, rank: int) -> None:
        if rank in self.frozen and rank not in self.dead:
            self._end(rank)
            self._all_lose(rank, "frozen", self.frozen[rank])

    def _join(self, rank: int) -> None:
        """It comes with empty memory; a frozen device that is not yet given up goes on where it was."""
        self._happened("device_joined", rank)
        self.dead.discard(rank)
        device = self.world.devices[rank]
        if self.frozen.pop(rank, None) is not None and rank not in device.lost:
            for program, handle in device.take_thawing():
                self.world.resume(program, handle)
            return
        for other in self.world.devices:
            other.conditions.join(rank)
        device.empty()
        if self.goes_on:
            raise Joined(f"{device.device.name} joined at {self.world.now_s:.3f} s.")

    def _end(self, rank: int) -> None:
        for program in [program for program in self.world.live if program.rank == rank]:
            program.close()
            self.world.live.discard(program)
        self.dead.add(rank)
        self.unsent += self.world.wires.forget(rank)

    def _all_lose(self, rank: int, how: str, since_s: float) -> None:
        if rank not in self.dead:  # it is back before anybody has missed it
            return
        world, name = self.world, self.cluster.devices[rank].name
        world.emit(Mark(world.now_s, "loss_detected", name, {"how": how, "since_s": since_s}))
        for device in world.devices:
            device.conditions.lose(rank)
        if rank == self.cluster.source_rank:
            sentence = f"{name} was lost at {world.now_s:.3f} s, and it is the source."
            raise PeerLost(sentence, name, world.now_s)
        for message in self.unsent:
            if message.dst == rank:
                world.finish(message.handle, None)
        for device in world.devices:
            if device.rank != rank:
                device.fail_waiting(rank, world.now_s)
