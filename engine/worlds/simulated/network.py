"""The simulated network: queues of messages, one per pair of devices, over links that all pairs share.

Messages of one (src, dst) pair keep their order. The head of each queue passes the queue of its device's own
link (`send_queue.py`) and becomes a flow; flows share the links max-min fair (`flows.py`). Rates are computed
once per point in time, after everything else at it. Where packets are lost, TCP's retransmissions delay a
message (`tcp/`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from math import ceil, inf
from random import Random
from typing import NamedTuple

from engine.domain.cluster import ClusterSpec
from engine.domain.message_costs import receiver_cost_s, sender_cost_s
from engine.domain.scenario import Change, SetRate
from engine.domain.token_bucket import SEGMENT_BYTES
from engine.domain.units import transfer_s
from engine.worlds.simulated.buckets import TokenBuckets
from engine.worlds.simulated.flows import DirectedLink, Flow, Route, SharedLinks
from engine.worlds.simulated.kernel import LAST, SimulationKernel
from engine.worlds.simulated.links import LinkConditions
from engine.worlds.simulated.message import SimulatedMessage
from engine.worlds.simulated.send_queue import SendQueue, Turn
from engine.worlds.simulated.tcp.connection import FOLLOWING_SEGMENTS, TcpConnection
from engine.worlds.simulated.tcp.path import PathConditions


class PairPath(NamedTuple):
    """The links from one device to another and back, with their present delays and losses."""

    there: Route
    back: Route
    there_s: float
    back_s: float
    loss_frac: float
    ack_loss_frac: float


class SimulatedNetwork:
    """Calls `on_departed(message)` when a message's last byte has left the sender, and `on_arrived(message)`
    when the receiver can use it. `seed` decides which packets are lost.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        kernel: SimulationKernel,
        on_departed: Callable[[SimulatedMessage], None],
        on_arrived: Callable[[SimulatedMessage], None],
        seed: int = 0,
    ):
        self.cluster, self.kernel, self.seed = cluster, kernel, seed
        self.on_departed, self.on_arrived = on_departed, on_arrived
        self.waiting_frac = 1.0
        """The share of a message's costs at its ends that passes by itself; the rest is the devices' work."""
        self.shared = SharedLinks(cluster)
        self.buckets: TokenBuckets | None = None
        """Those of emulated links, where messages are used as soon as they arrive; ideal links have none."""
        self.conditions = LinkConditions(cluster)
        self._block_or_unblock()
        self.queues: dict[tuple[int, int], deque[SimulatedMessage]] = defaultdict(deque)
        self.connections: dict[tuple[int, int], TcpConnection] = defaultdict(TcpConnection)
        self.in_repair: dict[tuple[int, int], deque[SimulatedMessage]] = defaultdict(deque)
        """Messages that have left over a path that loses packets, and have not arrived."""
        self._arrival_s: dict[tuple[int, int], float] = defaultdict(float)
        """When the last message of each pair arrives that nothing was lost of: later ones arrive after it,
        also if they are smaller or a delay is shorter now.
        """
        self._send_queues: dict[DirectedLink, SendQueue] = {}
        self._waiting: dict[SimulatedMessage, Turn] = {}  # in a send queue, not on the links yet
        self._routes: dict[tuple[int, int], Route] = {}
        self._paths: dict[tuple[int, int], PairPath] = {}  # emptied by every change of a link
        self._rates_are_due = False

    def send(self, message: SimulatedMessage) -> None:
        """Queue `message` behind the others from its sender to its receiver."""
        queue = self.queues[message.src, message.dst]
        queue.append(message)
        if len(queue) == 1:
            self._prepare(message)

    def drop_messages_of(self, rank: int) -> list[SimulatedMessage]:
        """Drop everything that device `rank` is sending and that is being sent to it.

        Returns the messages to it: their senders may be waiting for them to leave.
        """
        self._advance()
        dropped: list[SimulatedMessage] = []
        for (src, dst), queue in self.queues.items():
            if dst == rank:
                dropped += queue
            if rank in (src, dst):
                queue.clear()
        for message in [message for message in self._waiting if rank in (message.src, message.dst)]:
            del self._waiting[message]
        for flow in [flow for flow in self.shared.flows if rank in flow.ends]:
            self.shared.remove(flow)
        self._schedule_rates()
        return dropped

    def clear(self) -> None:
        """Drop all messages. Link conditions and TCP connections stay as they are.

        The kernel's actions of normal priority must be cancelled as well.
        """
        self.shared.clear(self.kernel.now_s)
        self.queues.clear()
        self.in_repair.clear()
        self._arrival_s.clear()
        self._waiting.clear()
        self._send_queues.clear()
        self._rates_are_due = False

    def change(self, change: Change) -> None:
        """Apply `change` of a link, or of the device at its end: a new rate or an outage also to messages
        under way, the rest to later ones.
        """
        self._advance()
        self._send_queues.clear()
        for message in list(self._waiting):
            self._leave_send_queue(message)
        if isinstance(change, SetRate):
            for link in self.conditions.changed(change):
                self.shared.set_rate(link, change.bit_per_s)
        self.conditions.apply(change)
        self._paths.clear()
        self._block_or_unblock()
        self._schedule_rates()

    def stalled(self) -> list[Flow]:
        """Flows that do not move because a link on their path is down."""
        return [flow for flow in self.shared.flows if any(link[0] in self.shared.down for link in flow.route)]

    def _block_or_unblock(self) -> None:
        blocked = self.conditions.blocked
        for index in sorted(blocked ^ self.shared.down):
            self.shared.set_down(index, index in blocked)

    def _route(self, src: int, dst: int) -> Route:
        if (src, dst) not in self._routes:
            self._routes[src, dst] = tuple((hop.link, hop.forward) for hop in self.cluster.path(src, dst))
        return self._routes[src, dst]

    def _path(self, src: int, dst: int) -> PairPath:
        path = self._paths.get((src, dst))
        if path is None:
            there, back, now = self._route(src, dst), self._route(dst, src), self.conditions
            path = self._paths[src, dst] = PairPath(
                there,
                back,
                now.path_delay_s(there),
                now.path_delay_s(back),
                now.path_loss_frac(there),
                now.path_loss_frac(back),
            )
        return path

    def delay_s(self, src: int, dst: int) -> float:
        """The delay from `src` to `dst` at present, without jitter: what an empty packet takes."""
        return self.conditions.path_delay_s(self._route(src, dst))

    # a message's way

    def _prepare(self, message: SimulatedMessage) -> None:
        """Spend the sender's fixed cost and staging time, then enter the links."""
        cost_s = self.waiting_frac * sender_cost_s(self.cluster.devices[message.src], message.size_bytes)
        self.kernel.schedule(self.kernel.now_s + cost_s, partial(self._enter_links, message))

    def _is_head(self, message: SimulatedMessage) -> bool:
        """Whether `message` is the head of its queue. If it is not, it was dropped."""
        queue = self.queues[message.src, message.dst]
        return bool(queue) and queue[0] is message

    def _enter_links(self, message: SimulatedMessage) -> None:
        if not self._is_head(message):
            return
        self._advance()
        now_s, route = self.kernel.now_s, self._route(message.src, message.dst)
        if self.buckets is not None:
            message.paced_bytes -= self.buckets.take(now_s, route, message.size_bytes)
        turn = self._send_queue(message).enter(now_s, message.paced_bytes, route)
        if turn.start_s > now_s:
            self._waiting[message] = turn
            self.kernel.schedule(turn.start_s, partial(self._leave_send_queue, message))
        else:
            self._start_flow(message, turn)

    def _send_queue(self, message: SimulatedMessage) -> SendQueue:
        """The queue of the first link from the message's sender to its receiver."""
        link = self._route(message.src, message.dst)[0]
        if link not in self._send_queues:
            self._send_queues[link] = SendQueue(link, self.shared)
        return self._send_queues[link]

    def _leave_send_queue(self, message: SimulatedMessage) -> None:
        if message in self._waiting:
            self._advance()
            self._start_flow(message, self._waiting.pop(message))

    def _start_flow(self, message: SimulatedMessage, turn: Turn) -> None:
        """Put `message` on the links: its first byte is sent now."""
        route = self._route(message.src, message.dst)
        message.enters_s = self.kernel.now_s
        self._repair_earlier_messages(message)
        flow = Flow(route, message.paced_bytes, partial(self._end_flow, message), (message.src, message.dst))
        self._send_queue(message).start(self.kernel.now_s, flow, turn)
        if self.shared.add(flow):
            self._schedule_end(flow)
        else:
            self._schedule_rates()

    def _end_flow(self, message: SimulatedMessage) -> None:
        """Take a message off the links, which have carried it once: it arrives after the path's delay if
        nothing was lost.
        """
        pair = message.src, message.dst
        _, _, there_s, back_s, loss_frac, ack_loss_frac = self._path(*pair)
        if self.buckets is not None and message.paced_bytes:
            self.buckets.end(self.kernel.now_s, self._route(*pair))
        receiver = self.cluster.devices[message.dst]
        received_s = self.waiting_frac * receiver_cost_s(receiver, message.size_bytes)
        if not loss_frac and not ack_loss_frac and not self.in_repair[pair]:
            self._free_queue(message)
            arrives_s = max(self.kernel.now_s + (there_s + received_s), self._arrival_s[pair])
            self._arrival_s[pair] = arrives_s
            self.kernel.schedule(arrives_s, partial(self._arrive, message))
            self.on_departed(message)
            return
        segments, took_s = ceil(message.size_bytes / SEGMENT_BYTES), self.kernel.now_s - message.enters_s
        path = PathConditions(took_s / segments, there_s, back_s, loss_frac, ack_loss_frac)
        random = Random(f"{self.seed} {message.src} {message.dst} {message.facts['message']}")
        delivery = self.connections[pair].deliver(segments, path, random, len(self.queues[pair]) > 1)
        left_s = max(self.kernel.now_s, message.enters_s + max(took_s, delivery.left_s))
        arrives_s = message.enters_s + max(took_s + there_s, delivery.arrived_s) + received_s
        message.arrives_s = max(left_s, arrives_s, self._arrival_s[pair])
        message.arrival_is_final = delivery.retransmission_was_lost
        self.kernel.schedule(left_s, lambda: self._depart_with_losses(message))

    def _arrive(self, message: SimulatedMessage) -> None:
        self.kernel.nothing_follows()
        self.on_arrived(message)

    def _free_queue(self, message: SimulatedMessage) -> None:
        """Let the next message of the pair go, as `message` has left."""
        queue = self.queues[message.src, message.dst]
        queue.popleft()
        if queue:
            self._prepare(queue[0])

    def _depart_with_losses(self, message: SimulatedMessage) -> None:
        """Let a message leave of which TCP has sent every segment once; some of them may have been lost."""
        if not self._is_head(message):
            return
        self.in_repair[message.src, message.dst].append(message)
        self._free_queue(message)
        self.kernel.schedule(message.arrives_s, lambda: self._arrive_in_order(message.src, message.dst))
        self.on_departed(message)

    def _arrive_in_order(self, src: int, dst: int) -> None:
        """Deliver what has arrived, up to the first message of the pair that has not."""
        waiting = self.in_repair[src, dst]
        while waiting and waiting[0].arrives_s <= self.kernel.now_s:
            self.on_arrived(waiting.popleft())

    def _repair_earlier_messages(self, message: SimulatedMessage) -> None:
        """Let earlier messages of the pair arrive sooner, because `message` follows them.

        Acknowledgements of its segments show the sender what the earlier ones lack, before a timer would. The
        sender retransmits that once. If the retransmission is lost, too few segments are in flight to show
        it, and the message arrives after a time-out.
        """
        src, dst = message.src, message.dst
        waiting = self.in_repair[src, dst]
        if not waiting:
            return
        there, back = self._route(src, dst), self._route(dst, src)
        segment_s = transfer_s(SEGMENT_BYTES, min(self.shared.capacity[link] for link in there))
        there_s = self.conditions.path_delay_s(there)
        round_trip_s = there_s + self.conditions.path_delay_s(back)
        repaired_s = self.kernel.now_s + (FOLLOWING_SEGMENTS + 1) * segment_s + round_trip_s + there_s
        for earlier in waiting:
            if not earlier.arrival_is_final and earlier.arrives_s > repaired_s:
                earlier.arrival_is_final = True
                random = Random(f"{self.seed} {src} {dst} {earlier.facts['message']} again")
                lost_again = random.random() < self.conditions.path_loss_frac(there)
                timeout_s = self.connections[src, dst].round_trip.timeout_s if lost_again else 0.0
                earlier.arrives_s = max(repaired_s + timeout_s, self._arrival_s[src, dst])
                self.kernel.schedule(earlier.arrives_s, lambda: self._arrive_in_order(src, dst))

    # rates

    def _advance(self) -> None:
        """Move all flows to the present and end those that are complete."""
        for flow in self.shared.advance(self.kernel.now_s):
            flow.on_done()

    def _schedule_rates(self) -> None:
        """Recompute the rates once, after everything else that happens at this time."""
        if not self._rates_are_due:
            self._rates_are_due = True
            self.kernel.schedule(self.kernel.now_s, self._recompute_rates, LAST)

    def _recompute_rates(self) -> None:
        self._rates_are_due = False
        self._advance()
        for flow in self.shared.update_rates():
            self._schedule_end(flow)

    def _schedule_end(self, flow: Flow) -> None:
        if flow.end_s != inf:
            self.kernel.schedule(max(flow.end_s, self.kernel.now_s), self._on_flow_end)

    def _on_flow_end(self) -> None:
        """End the flow that is due now, unless its rate has changed since this was scheduled."""
        self._advance()
        if self.shared.has_changed:
            self._schedule_rates()
