"""The only words a strategy may await. Both worlds implement this protocol; nothing else is promised.

Every verb starts at once and returns a handle: `y = await ctx.compute(…)` is synchronous use;
`h = ctx.send(…); …; await h` is overlap. A handle may be awaited once or never. Each device has FIFO
resources (compute, disk, one connection per ordered pair of devices), so contention needs no words.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Protocol

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.operation import Op
from engine.ops.tensors import Tensor


class Handle(Protocol):
    """Something started. Awaiting it gives its value or raises the `RunError` that ended it."""

    def __await__(self) -> Generator[Any, Any, Any]: ...


Note = tuple[int, ...]
"""A few integers that travel with a message, for what its receiver cannot know beforehand."""


class Decision(Protocol):
    """A data-dependent choice: what it is on real tensors, and what to suppose without any.

    Answers are JSON: they go into the trace, and from there into a simulation of the same run.
    """

    def __call__(self, *inputs: Tensor) -> Any: ...

    def prior(self, *inputs: Tensor) -> Any:
        """The simulated world's answer where no real run has given one; `inputs` have shapes only."""


class Ctx(Protocol):
    """One device's view of a run.

    A peer that is lost raises `PeerLost` (its `device` is the peer's name) where a program awaits a message
    from it. A strategy may catch it and go on; if it does not, the run re-plans over the survivors. What
    is sent to a lost peer is dropped, and the handle is done.
    """

    rank: int
    world_size: int
    device: DeviceSpec
    cluster: ClusterSpec
    model: ModelSpec
    memory: dict[str, Any]
    """What the strategy keeps on this device between forward passes; a new plan leaves it as it is."""

    @property
    def cluster_now(self) -> ClusterSpec:
        """The cluster as this device knows it now: rates and delays of links and speeds of devices as
        they were changed, lost devices as terminals. Devices learn of a change at different moments.
        """

    @property
    def lost(self) -> frozenset[int]:
        """Ranks that this device knows to be lost."""

    @property
    def now_s(self) -> float:
        """Virtual time of the event that last resumed this device's program."""

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        """Run `op` on this device's compute resource → its output tensor.

        Raises `OutOfMemory` when the ledger overflows, `PlanError` when its weights are not resident.
        """

    def send(self, tensor: Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        """To rank `dst`; done when the last byte has left. Sending to oneself is an error.

        `note` costs 8 bytes per integer (64 bits, signed).
        """

    def recv(self, src: int, tag: str) -> Handle:
        """The tensor that rank `src` sends with `tag`; messages with one tag keep their order."""

    def recv_noted(self, src: int, tag: str) -> Handle:
        """`(note, tensor)` of the next message with `tag` from rank `src`."""

    def load(self, piece: Slice) -> Handle:
        """Weights of `piece` from disk into memory, at disk_byte_per_s."""

    def evict(self, piece: Slice) -> None:
        """Weights of `piece` leave memory at once."""

    def holds(self, piece: Slice) -> bool:
        """Whether weights of just this `piece` are in memory or on their way there."""

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        """The oldest `rows` rows of a KV cache to disk, at disk_byte_per_s, except those it has already.

        They stay in memory until they are dropped, and must not change until the handle is done.
        """

    def drop_rows(self, cache: str, layer: int) -> None:
        """Those rows of a KV cache that the disk has leave memory at once."""

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        """Dropped rows of a KV cache back into memory, before the others, at disk_byte_per_s.

        An operation on the cache needs all its rows in memory: it raises `PlanError` otherwise.
        """

    def release(self, cache: str) -> None:
        """Forget the KV cache of a finished sequence."""

    def decide(self, name: str, choice: Decision, *inputs: Tensor) -> Any:
        """The only door for data-dependent choices; at once, and free in virtual time.

        The real world calls `choice(*inputs)` and records the answer; the simulated world answers from a
        record of the same run, or with `choice.prior(*inputs)`. What a choice costs is for the strategy to
        compute with operations beforehand. `name` is unique within a run of one device.
        """

    def spawn(self, program: Coroutine[Any, Any, Any]) -> Handle:
        """Run another program on this device, interleaved with this one; the handle gives its result."""

    def at(self, request: int, token: int) -> None:
        """Spans of the calling program belong to this request and token from now on."""

    def mark(self, name: str, **facts: Any) -> None:
        """Put an event into the trace, at `now_s`."""
