"""The only words a strategy may await. Both worlds implement this protocol; nothing else is promised.

Every verb starts at once and returns a handle: `y = await ctx.compute(…)` is synchronous use;
`h = ctx.send(…); …; await h` is overlap. A handle may be awaited once or never. Each device has FIFO
resources (compute, disk, one connection per ordered pair of devices), so contention needs no words.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

from engine.cluster import ClusterSpec, DeviceSpec
from engine.models.ops import Op
from engine.models.spec import ModelSpec
from engine.plan import Slice
from engine.tensors import Tensor


class Handle(Protocol):
    """Something started. Awaiting it gives its value or raises the `RunError` that ended it."""

    def __await__(self) -> Generator[Any, Any, Any]: ...


class Ctx(Protocol):
    """One device's view of a run."""

    rank: int
    world_size: int
    device: DeviceSpec
    cluster: ClusterSpec
    model: ModelSpec

    @property
    def now_s(self) -> float:
        """Virtual time of the event that last resumed this device's program."""

    def compute(self, op: Op, *inputs: Tensor) -> Handle:
        """Run `op` on this device's compute resource → its output tensor.

        Raises `OutOfMemory` when the ledger overflows, `PlanError` when its weights are not resident.
        """

    def send(self, tensor: Tensor, dst: int, tag: str) -> Handle:
        """To rank `dst`; done when the last byte has left. Sending to oneself is an error."""

    def recv(self, src: int, tag: str) -> Handle:
        """The tensor that rank `src` sends with `tag`; messages with one tag keep their order."""

    def load(self, piece: Slice) -> Handle:
        """Weights of `piece` from disk into memory, at disk_byte_per_s."""

    def evict(self, piece: Slice) -> None:
        """Weights of `piece` leave memory at once."""

    def release(self, cache: str) -> None:
        """Forget the KV cache of a finished sequence."""

    def decide(self, name: str, fn: Callable[..., Any], *inputs: Tensor) -> Any:
        """The only door for data-dependent choices.

        The real world calls `fn(*inputs)` and records the answer; the simulated world answers from the
        record, or with `fn.prior` if there is none.
        """

    def spawn(self, program: Coroutine[Any, Any, Any]) -> Handle:
        """Run another program on this device, interleaved with this one; the handle gives its result."""

    def at(self, request: int, token: int) -> None:
        """Spans of the calling program belong to this request and token from now on."""

    def mark(self, name: str, **facts: Any) -> None:
        """Put an event into the trace, at `now_s`."""
