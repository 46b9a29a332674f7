"""The interface through which a strategy computes, sends and receives. Both worlds implement it.

Every operation starts at once and returns a handle: `y = await ctx.compute(…)` waits for it, `h =
ctx.send(…); …; await h` overlaps it with other work. A handle may be awaited once or never. Each device has
FIFO resources (compute, disk, one connection per ordered pair of devices), which serialise what contends.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Protocol

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.ops.layers import Layers
from engine.ops.operation import Op
from engine.ops.tensors import Tensor


class Handle(Protocol):
    """An operation that was started. Awaiting it gives its value or raises the `RunError` that ended it."""

    def __await__(self) -> Generator[Any, Any, Any]: ...


Note = tuple[int, ...]
"""A few integers sent with a message that its receiver cannot know beforehand."""


class Decision(Protocol):
    """A data-dependent choice, with a default for the simulated world, which has no data.

    Answers are JSON. The trace records them, and a simulation of the same run repeats them.
    """

    def __call__(self, *inputs: Tensor) -> Any: ...

    def prior(self, *inputs: Tensor) -> Any:
        """The simulated world's answer if no real run has recorded one; `inputs` have shapes only."""


class ManagedMemory(Protocol):
    """Memory of a device that a strategy manages by itself: rows of KV caches that wait on disk while memory
    is short, and what it keeps between operations (EdgeFormer's tables).
    """

    def store_rows(self, cache: str, layer: int, rows: int) -> Handle:
        """Write the oldest `rows` rows of a KV cache to disk, at disk_byte_per_s, except those already there.

        They stay in memory until `drop_rows`, and must not change until the handle is done.
        """

    def drop_rows(self, cache: str, layer: int) -> None:
        """Remove the rows of a KV cache that are on disk from memory, at once."""

    def fetch_rows(self, cache: str, layer: int) -> Handle:
        """Read dropped rows of a KV cache back into memory, at disk_byte_per_s.

        An operation on the cache raises `PlanError` unless all its rows are in memory.
        """

    def reserve(self, name: str, size_bytes: int) -> None:
        """Account for `size_bytes` of memory that the strategy keeps between operations under `name`, in
        place of what it had there before. Raises `OutOfMemory` when the ledger overflows.
        """


class Ctx(Protocol):
    """One device's view of a run: it is number `rank` of `world_size`.

    Awaiting a message from a peer that has failed raises `PeerFailed` (its `device` is the peer's name). A
    strategy may catch it and continue; otherwise the run re-plans over the remaining devices. A message to a
    failed peer is dropped, and its handle is done.
    """

    rank: int
    world_size: int
    device: DeviceSpec
    cluster: ClusterSpec
    model: ModelSpec
    memory: dict[str, Any]
    """What the strategy keeps on this device between forward passes; a new plan leaves it as it is."""

    @property
    def managed_memory(self) -> ManagedMemory:
        """The memory of this device, for strategies that manage a part of it by themselves."""

    @property
    def cluster_now(self) -> ClusterSpec:
        """The cluster with all changes that this device has received: changed rates, delays and speeds,
        failed devices as terminals. Devices receive a change at different times.
        """

    @property
    def failed(self) -> frozenset[int]:
        """Ranks of the devices whose failure has been reported to this device."""

    @property
    def now_s(self) -> float:
        """Virtual time of the event that last resumed this device's program."""

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        """Run `op` on this device's compute resource, on `inputs` of the shapes that it takes → its output.

        Raises `OutOfMemory` when the ledger overflows, `PlanError` when its weights are not resident.
        """

    async def compute_layers(self, layers: Layers, x: Tensor) -> Tensor:
        """The result of all operations of `layers` on hidden rows `x` [B, T, D], each computed when the one
        before has ended: [B, T, D].
        """

    def send(self, tensor: Tensor, dst: int, tag: str, note: Note = ()) -> Handle:
        """Send `tensor`, of any shape, to rank `dst`; done when the last byte is sent. A device cannot send
        to itself.

        `note` costs 8 bytes per integer (64 bits, signed).
        """

    def recv(self, src: int, tag: str) -> Handle:
        """The tensor that rank `src` sends with `tag`; messages with one tag keep their order."""

    def recv_noted(self, src: int, tag: str) -> Handle:
        """`(note, tensor)` of the next message with `tag` from rank `src`."""

    def load(self, piece: Slice) -> Handle:
        """Load the weights of `piece` from disk into memory, at disk_byte_per_s."""

    def evict(self, piece: Slice) -> None:
        """Remove the weights of `piece` from memory at once."""

    def holds(self, piece: Slice) -> bool:
        """Whether exactly this `piece` is in memory or being loaded."""

    def release(self, cache: str) -> None:
        """Free the KV cache of a finished sequence, and its parts by heads, which are called `cache/…`."""

    def decide(self, name: str, choice: Decision, *inputs: Tensor) -> Any:
        """Make a data-dependent choice; takes no virtual time. All such choices must go through it.

        The real world calls `choice(*inputs)` and records the answer. The simulated world answers from the
        record of the same run, or with `choice.prior(*inputs)`; `inputs` have any shape. A strategy accounts
        for the cost of a choice by computing operations before it. `name` is unique within a run of one
        device.
        """

    def keep_logits(self, requests: Sequence[int], index: int, start: int, logits: Tensor) -> None:
        """Keep this device's logits [B, n] of the tokens from `start` on for the proof of the run: of token
        `index` of every request. Takes no time and sends nothing; shapes alone are not kept.
        """

    def spawn(self, program: Coroutine[Any, Any, Any]) -> Handle:
        """Start another program on this device, interleaved with this one; the handle gives its result."""

    def until(self, time_s: float) -> Handle:
        """A handle that is done at virtual time `time_s`, at once if that has passed. It occupies nothing."""

    def at(self, request: int, token: int) -> None:
        """Attribute the spans of the calling program to this request and token from now on."""

    def mark(self, name: str, **facts: Any) -> None:
        """Add an event to the trace, at `now_s`; its `facts` are JSON."""
