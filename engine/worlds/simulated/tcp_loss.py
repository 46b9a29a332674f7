"""How late a message is because packets are lost: one TCP connection, frame by frame, in virtual time.

What Linux does (net/ipv4/tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_timer.c), as far as it costs time:
- The window (RFC 5681, Reno): slow start; after a loss half of it, then a frame more per round trip.
- RACK (RFC 8985): a frame is lost when one that was sent later has arrived: at once if three have, else
  after a quarter of a round trip. All that a window has lost is sent again in one round trip.
- Tail loss probe (RFC 8985, section 7): if nothing comes back for two round trips the last frame is sent
  again. Not if it is alone: then its acknowledgement may be delayed, and the time-out comes first.
- Retransmission time-out (RFC 6298): max(200 ms, 4 × variation) after the round trip, then twice as long.
Frames and acknowledgements keep their order; an acknowledgement tells all that has arrived.
"""

from __future__ import annotations

import math
from collections import deque
from random import Random
from typing import Literal, NamedTuple

SEGMENT_BYTES = 1448
"""Payload of a full frame: an MTU of 1500 less IP, TCP and its time stamps."""

RTO_MIN_S = 0.2
RTO_MAX_S = 120.0
TIMER_S = 0.002
"""Least time of a probe or reordering timer (include/net/tcp.h, TCP_TIMEOUT_MIN_US)."""

SOON_S = 1e-9
"""Less than this apart are times that differ by rounding only."""

DUPLICATES = 3
FIRST_WINDOW = 20.0
"""10 at first (RFC 6928), doubled by what warms a connection up."""

DEVICE_QUEUE_FRAMES = 3
"""TCP Small Queues: more than two frames that wait for the link make the sender wait."""

FOLLOWERS = 3
"""Frames of a following message that tell what this one has lost."""

State = Literal["open", "repairing", "timed out"]
"""Of a connection: nothing is known to be lost; RACK has found a loss; nothing came back for too long."""


class Path(NamedTuple):
    """`frame_s`: a frame's time on the slowest link. Delays one way and the other, s; fractions lost."""

    frame_s: float
    there_s: float
    back_s: float
    loss_frac: float
    ack_loss_frac: float

    @property
    def round_trip_s(self) -> float:
        """Of one frame on an idle path."""
        return self.frame_s + self.there_s + self.back_s


class Copy(NamedTuple):
    """One sending of a frame."""

    serial: int
    sent_s: float


class Carried(NamedTuple):
    """Seconds after a message's start: its last frame has left for the first time, all have arrived.

    `stuck`: what was sent again was lost again, so frames of later messages could not tell anything.
    """

    left_s: float
    arrived_s: float
    stuck: bool


class Connection:
    """What TCP keeps from one message to the next: window and threshold (frames), round trip (s)."""

    def __init__(self) -> None:
        self.window = FIRST_WINDOW
        self.threshold = math.inf
        self.owes = False  # a probe has repaired a loss, which counts when something later is acknowledged
        self.round_trip_s = 0.0
        self.variation_s = 0.0

    def carry(self, frames: int, path: Path, random: Random, followed: bool = False) -> Carried:
        """Send a message of so many frames. `followed`: another one comes right behind it."""
        if not self.round_trip_s:
            self.round_trip_s, self.variation_s = path.round_trip_s, path.round_trip_s / 2
        return _Transfer(self, frames, frames + (FOLLOWERS if followed else 0), path, random).run()

    @property
    def timeout_s(self) -> float:
        return self.round_trip_s + max(RTO_MIN_S, 4 * self.variation_s)

    def measure(self, sample_s: float) -> None:
        """RFC 6298, section 2."""
        self.variation_s += (abs(sample_s - self.round_trip_s) - self.variation_s) / 4
        self.round_trip_s += (sample_s - self.round_trip_s) / 8

    def shrink(self) -> None:
        self.threshold = max(2.0, self.window // 2)


class _Transfer:
    """One message under way. Frames 0 … `frames` − 1 are its own, the others those of a follower."""

    def __init__(self, tcp: Connection, frames: int, total: int, path: Path, random: Random):
        self.tcp, self.frames, self.total, self.path, self.random = tcp, frames, total, path, random
        self.now_s = self.wire_free_s = 0.0
        self.until_loss = self._gap()
        # the sender's knowledge
        self.fresh = self.first = 0  # frames that were never sent start here; all before are acknowledged
        self.known = [False] * total  # acknowledged, as far as the sender has heard
        self.flying: dict[int, Copy] = {}  # frame → its last copy, in the order of sending
        self.lost: deque[int] = deque()  # to be sent again
        self.serial = 0  # of the last copy sent
        self.newest = Copy(0, -math.inf)  # that was heard of
        self.newest_took_s = 0.0
        self.heard = self.reported = 0
        self.most = 0  # frames that were ever on their way at once
        self.state: State = "open"
        self.goal = 0  # a repair is over when all frames before are acknowledged
        self.before_repair = 1.0  # the window
        self.repair_heard = self.repair_sent = 0  # frames, since the repair began
        self.probed = self.probe_repairs = False
        self.limited_to = 0  # the window was full when frames up to here had been sent
        self.backoff = 1
        self.acted_s = 0.0  # the timers run from here
        self.reorder_at_s = math.inf
        # the receiver's
        self.here = [False] * total
        self.missing = frames
        self.copies: list[tuple[int, Copy]] = []  # frames that arrived, in order
        self.acks: deque[tuple[float, int]] = deque()  # when the sender hears how many copies have arrived
        self.left_s = self.arrived_s = 0.0
        self.stuck = False

    def run(self) -> Carried:
        while self.missing:
            self._send_what_may()
            ack_s = self.acks[0][0] if self.acks else math.inf
            timer_s = self._timer_s()
            room_s = self._room_s() if self._may_send() else math.inf
            self.now_s = max(self.now_s, min(ack_s, timer_s, room_s))
            if ack_s <= min(timer_s, room_s):
                self._hear()
            elif timer_s < room_s:
                self._time_out()
        while self.acks:  # what is on its way still teaches the window something
            self.now_s = self.acks[0][0]
            self._hear()
        if self.state == "repairing":
            self._end_repair()
        return Carried(self.left_s, self.arrived_s, self.stuck)

    # sending

    def _may_send(self) -> bool:
        return bool(self.lost or self.fresh < self.total) and len(self.flying) < int(self.tcp.window)

    def _room_s(self) -> float:
        """When the link's queue takes another frame."""
        return self.wire_free_s - DEVICE_QUEUE_FRAMES * self.path.frame_s

    def _send_what_may(self) -> None:
        while self._may_send() and self._room_s() <= self.now_s:
            frame = self.lost.popleft() if self.lost else self.fresh
            if frame == self.fresh:
                self.fresh += 1
            if frame == self.first or not self.flying or self.state == "open":
                self.acted_s = self.now_s
            self._send(frame)
        if len(self.flying) >= int(self.tcp.window):
            self.limited_to = self.fresh

    def _send(self, frame: int) -> None:
        self.wire_free_s = max(self.now_s, self.wire_free_s) + self.path.frame_s
        self.serial += 1
        self.flying.pop(frame, None)
        copy = Copy(self.serial, self.now_s)
        self.flying[frame] = copy
        self.repair_sent += 1
        self.most = max(self.most, len(self.flying))
        if frame == self.frames - 1 and not self.left_s:
            self.left_s = self.wire_free_s
        if self.until_loss < 1:
            self.until_loss = self._gap()
            return
        self.until_loss -= 1
        arrived_s = self.wire_free_s + self.path.there_s
        if not self.here[frame]:
            self.here[frame] = True
            self.missing -= frame < self.frames
            self.arrived_s = arrived_s if frame < self.frames else self.arrived_s
        self.copies.append((frame, copy))
        ack_loss_frac = self.path.ack_loss_frac
        if not ack_loss_frac or self.random.random() >= ack_loss_frac:
            self.acks.append((arrived_s + self.path.back_s, len(self.copies)))

    def _gap(self) -> float:
        """How many frames arrive until one is lost."""
        loss_frac = self.path.loss_frac
        if loss_frac <= 0:
            return math.inf
        return math.floor(math.log(1 - self.random.random()) / math.log1p(-loss_frac))

    # acknowledgements

    def _hear(self) -> None:
        _, arrived = self.acks.popleft()
        news = 0
        for frame, copy in self.copies[self.heard : arrived]:
            if copy.serial > self.newest.serial:
                self.newest, self.newest_took_s = copy, self.now_s - copy.sent_s
            if not self.known[frame]:
                self.known[frame] = True
                news += 1
                if self.flying.pop(frame, None) == copy:
                    self.tcp.measure(self.now_s - copy.sent_s)
        self.heard = arrived
        if self.lost:
            self.lost = deque(frame for frame in self.lost if not self.known[frame])
        before = self.first
        while self.first < self.fresh and self.known[self.first]:
            self.first += 1
        advanced = self.first > before
        self.reported += news - (self.first - before)  # acknowledged beyond a gap
        if advanced:
            self.acted_s, self.backoff = self.now_s, 1
            self._pay_for_probe()
        if self.state != "repairing":
            self._grow(news, limited=before < self.limited_to)
        if self.first >= self.goal:
            self._end_repair()
        found = self._find_lost()
        if self.state == "repairing":
            self._pace_repair(news, advanced and not found)

    def _pay_for_probe(self) -> None:
        tcp = self.tcp
        if tcp.owes:
            tcp.shrink()
            tcp.window, tcp.owes = tcp.threshold, False

    def _grow(self, news: int, limited: bool) -> None:
        """Only as far as the window is used."""
        tcp = self.tcp
        if tcp.window < tcp.threshold:
            if limited or tcp.window < 2 * self.most:
                tcp.window = min(tcp.window + news, tcp.threshold)
        elif limited:
            tcp.window += news / int(tcp.window)

    def _end_repair(self) -> None:
        if self.state == "repairing":
            self.tcp.window = self.tcp.threshold
        elif self.state == "open" and self.probed and self.probe_repairs:
            self.tcp.owes = True
        self.state = "open"
        self.probed = False

    def _find_lost(self) -> bool:
        """RACK: what was sent before something that has arrived is lost. Whether there is any.

        The sender waits for a quarter of a round trip, as frames might have changed places, unless three
        frames say so or it is repairing already.
        """
        patience_s = 0.0
        if self.state == "open" and self.reported < DUPLICATES:
            patience_s = self.path.round_trip_s / 4
        due_s = self.now_s - self.newest_took_s - patience_s
        lost = []
        for frame, copy in self.flying.items():
            if copy.serial >= self.newest.serial:
                break
            if copy.sent_s > due_s + SOON_S:
                if self.reorder_at_s == math.inf:
                    self.reorder_at_s = self.now_s + copy.sent_s - due_s + TIMER_S
                break
            lost.append(frame)
        else:
            self.reorder_at_s = math.inf
        if lost:
            self._lose(lost)
        return bool(lost)

    def _lose(self, frames: list[int]) -> None:
        """Send these again, and less at once."""
        for frame in frames:
            del self.flying[frame]
        self.lost = deque(sorted([*self.lost, *frames]))
        self.reorder_at_s = math.inf
        if self.state == "open":
            self.before_repair = self.tcp.window
            self.tcp.shrink()
            self.state, self.goal = "repairing", self.fresh
            self.repair_heard = self.repair_sent = 0

    def _pace_repair(self, news: int, well: bool) -> None:
        """Proportional rate reduction (RFC 6937, section 3): as much as arrives, up to the threshold."""
        self.repair_heard += news
        flying, threshold = len(self.flying), self.tcp.threshold
        if flying > threshold:
            share = math.ceil(threshold * self.repair_heard / self.before_repair) - self.repair_sent
        else:
            share = max(self.repair_heard - self.repair_sent, news) + well
            share = min(share, int(threshold) - flying)
        if not self.repair_sent:
            share = max(share, 1)
        self.tcp.window = flying + max(share, 0)

    # timers

    def _may_probe(self) -> bool:
        """A single frame is given so long for its acknowledgement that the time-out comes first."""
        return self.state == "open" and not self.probed and not self.reported and self.fresh - self.first > 1

    def _timer_s(self) -> float:
        if self.fresh == self.first or self.reorder_at_s < math.inf:
            return self.reorder_at_s
        after_s = min(RTO_MAX_S, self.tcp.timeout_s * self.backoff)
        if self._may_probe():
            after_s = min(after_s, 2 * self.tcp.round_trip_s + TIMER_S)
        return self.acted_s + after_s

    def _time_out(self) -> None:
        if self.reorder_at_s < math.inf:
            self.reorder_at_s = math.inf
            self.newest_took_s = -math.inf  # long enough
            if self._find_lost():
                self._pace_repair(1, well=False)
        elif self._may_probe():
            frame = min(self.fresh, self.total - 1)
            self.fresh = max(self.fresh, frame + 1)
            self.probed, self.probe_repairs, self.goal = True, not self.here[frame], self.fresh
            self.acted_s = self.now_s
            self._send(frame)
        else:
            self.stuck |= self.state == "repairing"
            if self.state == "open":
                self.tcp.shrink()
            self.tcp.window = 1.0
            self.state, self.goal, self.probed = "timed out", self.fresh, False
            self.lost = deque(frame for frame in range(self.first, self.fresh) if not self.known[frame])
            self.flying.clear()
            self.acted_s = self.now_s
            self.backoff *= 2
