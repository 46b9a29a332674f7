"""The simulated world's network: queues of messages per connection, and the links that they share.

Messages of one (src, dst) pair keep their order; the head of each queue is a flow on the links, which are
shared max-min fair (`flows.py`). Rates are computed once per instant, after everything else at it. Where
packets are lost, a message is as late as TCP makes it (`losses.py`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from math import ceil, prod
from random import Random
from typing import Any, Protocol

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import LinkChange, LinkDown, LinkUp, SetDelay, SetLoss, SetRate
from engine.domain.trace import Span
from engine.domain.units import transfer_s
from engine.ops.tensors import Tensor
from engine.program.ctx import Note
from engine.worlds.common.paths import sender_cost_s
from engine.worlds.common.programs import Handle
from engine.worlds.simulated.flows import Direction, Flow, SharedLinks
from engine.worlds.simulated.tcp_loss import FOLLOWERS, SEGMENT_BYTES, Connection, Path

Route = tuple[Direction, ...]


class Message:
    """A tensor on its way, or its shape: it enters the links and arrives at these times."""

    def __init__(
        self, src: int, dst: int, tag: str, tensor: Tensor, note: Note, sent_s: float, facts: dict[str, Any]
    ):
        self.src, self.dst, self.tag = src, dst, tag
        self.tensor, self.note = tensor, note
        self.sent_s = sent_s
        self.facts = facts
        self.size_bytes: int = facts["bytes"]
        self.handle = Handle(f"send {tag}")
        self.enters_s = self.arrives_s = 0.0
        self.stuck = False  # a following message cannot make it less late

    def span(self, kind: Any, cluster: ClusterSpec, end_s: float) -> Span:
        names = (cluster.devices[self.src].name, cluster.devices[self.dst].name)
        me, peer = names if kind == "send" else names[::-1]
        return Span(me, kind, start_s=self.sent_s, end_s=end_s, peer=peer, **self.facts)


class Clock(Protocol):
    """What the network needs of its world."""

    now_s: float

    def schedule(self, time_s: float, action: Callable[[], None], priority: int = 0) -> None: ...


class Wires:
    """`departed(message)` is called when a message's last byte has left, `arrived(message)` when it can be
    used at the other end. `seed` decides which packets are lost.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        clock: Clock,
        departed: Callable[[Message], None],
        arrived: Callable[[Message], None],
        seed: int = 0,
    ):
        self.cluster = cluster
        self.clock = clock
        self.departed, self.arrived = departed, arrived
        self.seed = seed
        self.links = SharedLinks(cluster)
        self.delay_s = {
            (index, forward): link.delay(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        self.loss_frac = {
            (index, forward): link.loss(forward)
            for index, link in enumerate(cluster.links)
            for forward in (True, False)
        }
        self.cut: set[int] = set()
        self.connections: dict[tuple[int, int], Connection] = defaultdict(Connection)
        self.late: dict[tuple[int, int], deque[Message]] = defaultdict(deque)  # sent over lossy paths
        for link in range(len(cluster.links)):
            self._open_or_shut(link)
        self.version = 0
        self.dirty = False
        self.queues: dict[tuple[int, int], deque[Message]] = defaultdict(deque)
        self.routes: dict[tuple[int, int], Route] = {}

    def route(self, src: int, dst: int) -> Route:
        """Directed links from `src` to `dst`."""
        if (src, dst) not in self.routes:
            self.routes[src, dst] = tuple((hop.link, hop.forward) for hop in self.cluster.path(src, dst))
        return self.routes[src, dst]

    def post(self, message: Message) -> None:
        """Queue a message on its connection; the head of the queue is under way."""
        queue = self.queues[message.src, message.dst]
        queue.append(message)
        if len(queue) == 1:
            self._prepare(message)

    def forget(self, rank: int) -> list[Message]:
        """Device `rank` is gone: what it has on its way never arrives, and what is sent to it neither.

        Returns the latter: their senders may wait for them to leave.
        """
        self._settle()
        dropped: list[Message] = []
        for (src, dst), queue in self.queues.items():
            if dst == rank:
                dropped += queue
            if rank in (src, dst):
                queue.clear()
        for flow in [flow for flow in self.links.flows if rank in flow.ends]:
            self.links.remove(flow)
        self._reshare()
        return dropped

    def clear(self) -> None:
        """Nothing is on its way any more; the links stay as they are."""
        self.links.clear(self.clock.now_s)
        self.queues.clear()
        self.late.clear()
        self.dirty = False
        self.version += 1

    def change(self, change: LinkChange) -> None:
        self._settle()
        link = self.cluster.link_index(change.link)
        if isinstance(change, LinkDown | LinkUp):
            (self.cut.add if isinstance(change, LinkDown) else self.cut.discard)(link)
        else:
            for forward, name in ((True, "forward"), (False, "backward")):
                if change.direction in ("both", name):
                    if isinstance(change, SetRate):
                        self.links.set_rate((link, forward), change.bit_per_s)
                    elif isinstance(change, SetDelay):
                        self.delay_s[link, forward] = change.delay_s
                    elif isinstance(change, SetLoss):
                        self.loss_frac[link, forward] = change.loss_frac
        self._open_or_shut(link)
        self._reshare()

    def _open_or_shut(self, link: int) -> None:
        """What loses everything, or every acknowledgement, is as good as down."""
        worst = max(self.loss_frac[link, forward] for forward in (True, False))
        shut = link in self.cut or worst >= 1
        if shut != (link in self.links.down):
            self.links.set_down(link, shut)

    def stalled(self) -> list[Flow]:
        """Flows that a link that is down keeps from moving."""
        return [flow for flow in self.links.flows if any(way[0] in self.links.down for way in flow.path)]

    def _prepare(self, message: Message) -> None:
        """Pay the sender's fixed cost and staging, then enter the links."""
        hold_s = sender_cost_s(self.cluster.devices[message.src], message.size_bytes)
        self.clock.schedule(self.clock.now_s + hold_s, lambda: self._enter_links(message))

    def _enter_links(self, message: Message) -> None:
        queue = self.queues[message.src, message.dst]
        if not queue or queue[0] is not message:  # an end of it was lost meanwhile
            return
        path = self.route(message.src, message.dst)
        message.enters_s = self.clock.now_s
        self._hurry(message)
        self._settle()
        self.links.add(
            Flow(path, message.size_bytes, lambda: self._depart(message), (message.src, message.dst))
        )
        self._reshare()

    def _depart(self, message: Message) -> None:
        """The last byte is through, if none was lost: free the connection, deliver after the path's delay."""
        pair = message.src, message.dst
        there_s, back_s = self._delay_s(*pair), self._delay_s(*pair[::-1])
        loss_frac, ack_loss_frac = self._loss_frac(*pair), self._loss_frac(*pair[::-1])
        receiver = self.cluster.devices[message.dst]
        staging_s = message.size_bytes / receiver.staging_byte_per_s if receiver.staging_byte_per_s else 0.0
        if not loss_frac and not ack_loss_frac and not self.late[pair]:
            self._leave(message)
            delay_s = there_s + staging_s
            self.clock.schedule(self.clock.now_s + delay_s, lambda: self.arrived(message))
            self.departed(message)
            return
        frames, took_s = ceil(message.size_bytes / SEGMENT_BYTES), self.clock.now_s - message.enters_s
        path = Path(took_s / frames, there_s, back_s, loss_frac, ack_loss_frac)
        random = Random(f"{self.seed} {message.src} {message.dst} {message.facts['message']}")
        carried = self.connections[pair].carry(frames, path, random, len(self.queues[pair]) > 1)
        left_s = message.enters_s + max(took_s, carried.left_s)
        arrives_s = message.enters_s + max(took_s + there_s, carried.arrived_s) + staging_s
        message.arrives_s, message.stuck = arrives_s, carried.stuck
        self.clock.schedule(left_s, lambda: self._depart_late(message))

    def _leave(self, message: Message) -> None:
        queue = self.queues[message.src, message.dst]
        queue.popleft()
        if queue:
            self._prepare(queue[0])

    def _depart_late(self, message: Message) -> None:
        """All of a message has left, some of it perhaps in vain."""
        queue, late = self.queues[message.src, message.dst], self.late[message.src, message.dst]
        if not queue or queue[0] is not message:  # an end of it was lost meanwhile
            return
        late.append(message)
        self._leave(message)
        self.clock.schedule(message.arrives_s, lambda: self._arrive_late(message.src, message.dst))
        self.departed(message)

    def _arrive_late(self, src: int, dst: int) -> None:
        """Nothing of a pair overtakes what was sent before."""
        late = self.late[src, dst]
        while late and late[0].arrives_s <= self.clock.now_s:
            self.arrived(late.popleft())

    def _hurry(self, message: Message) -> None:
        """Frames of this message tell the sender what earlier ones lack, before its timers would.

        That is sent again once. If it is lost again, the window is too small for anything else to tell so,
        and the time-out comes after all.
        """
        src, dst = message.src, message.dst
        late = self.late[src, dst]
        if not late:
            return
        frame_s = transfer_s(SEGMENT_BYTES, min(self.links.capacity[way] for way in self.route(src, dst)))
        round_trip_s = self._delay_s(src, dst) + self._delay_s(dst, src)
        repaired_s = self.clock.now_s + (FOLLOWERS + 1) * frame_s + round_trip_s + self._delay_s(src, dst)
        for earlier in late:
            if not earlier.stuck and earlier.arrives_s > repaired_s:
                earlier.stuck = True
                again = Random(f"{self.seed} {src} {dst} {earlier.facts['message']} again")
                lost = again.random() < self._loss_frac(src, dst)
                earlier.arrives_s = repaired_s + (self.connections[src, dst].timeout_s if lost else 0.0)
                self.clock.schedule(earlier.arrives_s, lambda: self._arrive_late(src, dst))

    def _delay_s(self, src: int, dst: int) -> float:
        return sum(self.delay_s[way] for way in self.route(src, dst))

    def _loss_frac(self, src: int, dst: int) -> float:
        """Of a path: what one of its links loses, the next does not carry."""
        return 1 - prod(1 - self.loss_frac[way] for way in self.route(src, dst))

    def _settle(self) -> None:
        """Bring every flow to the present; those that are through depart."""
        for flow in self.links.advance(self.clock.now_s):
            flow.on_done()

    def _reshare(self) -> None:
        """Recompute the rates once per instant, after everything else that happens at it."""
        if not self.dirty:
            self.dirty = True
            self.clock.schedule(self.clock.now_s, self._share, priority=1)

    def _share(self) -> None:
        self.dirty = False
        self._settle()
        self.links.share()
        self.version += 1
        version, end_s = self.version, self.links.next_end_s()
        if end_s is not None:
            self.clock.schedule(max(end_s, self.clock.now_s), lambda: self._flow_ends(version))

    def _flow_ends(self, version: int) -> None:
        if version == self.version:
            self._settle()
            self._reshare()
