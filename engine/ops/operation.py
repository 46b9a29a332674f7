"""The interface of all operations of a transformer: frozen values with their cost and their weights.

`Op` is the interface, `Cost` what `Op.cost` returns, `Operation` what our own operations say besides. An op
that names a `cache` appends the keys and values of its T new rows to the device's KV cache of that name and
layer, and attends over all S rows in it. The functions that compute the ops on real tensors are in
`engine/ops/torch_kernels/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from engine.domain.model import ModelSpec, first_alike
from engine.domain.plan import Axis, Part, Slice
from engine.ops.kernels import Kernel
from engine.ops.ragged import CacheName
from engine.ops.tensors import Meta

LayerPart = Literal["attention", "ffn"]
"""A part of a layer."""


class Cost(NamedTuple):
    """Kernels to run, shape of the result, bytes of temporary tensors, growth of the KV cache.

    The kernels run `speed` times as fast as the device's compute model says.
    """

    kernels: tuple[Kernel, ...]
    output: Meta
    scratch_bytes: int = 0
    kv_bytes: int = 0
    kv_rows: int = 0
    speed: float = 1.0


class Op(Protocol):
    """An operation of a device. `layer` is -1 outside the layers. `cache` names its KV cache or caches."""

    @property
    def name(self) -> str:
        """What the trace calls it."""
        ...

    @property
    def layer(self) -> int:
        """Number of its layer; -1 outside the layers."""
        ...

    @property
    def cache(self) -> CacheName | None:
        """The KV cache that it reads and appends to, or those of a ragged batch; None: it has none."""
        ...

    def __hash__(self) -> int: ...

    def slices(self, model: ModelSpec) -> Sequence[Slice]:
        """Weights that must be resident on the device."""

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        """The kernels and the output of the operation; `cached` rows are already in its KV cache (0 without
        one).
        """


ALIKE = "two equal shapes"

Share = tuple[float, float]
"""Row-heads of attention, and row-columns × hidden units of the feed-forward part, that are computed of a
layer: over all devices, a step adds up to all of them."""

NOTHING: Share = (0, 0)


class Operation:
    """What an operation says for the checks of the simulated world; one of a package need not.

    `takes` are the shapes of the inputs: numbers, sizes of the model (D hidden_size, E head_dim, K
    num_kv_heads, V vocab_size) and those of `sizes`; any other word stands for one size, the same wherever
    it is. Without it any inputs will do. `counts` names the size of the model of which `start` and `stop`
    are a range. `is_of_one_part`: it computes a piece of a feed-forward part that all rows go through, which
    a layer with experts has not. `sums_to_one`: it takes the attention weights of a row to sum to 1, which
    they do not beside sinks.
    """

    __slots__ = ()
    takes: ClassVar[str] = ""
    counts: ClassVar[str] = ""
    needs_rows: ClassVar[bool] = False
    is_of_one_part: ClassVar[bool] = False
    sums_to_one: ClassVar[bool] = False

    def sizes(self, model: ModelSpec) -> dict[str, int]:
        """The words of `takes` that stand for a size of the operation."""
        return {}

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        """Weights that must be resident on the device; none unless the operation says so."""
        return ()

    def share(self, model: ModelSpec, inputs: Sequence[Meta]) -> Share:
        """How much of its layer is computed."""
        return NOTHING


def whole_share(model: ModelSpec, rows: int) -> Share:
    """So many rows of a whole layer."""
    return rows * model.num_heads, rows * model.intermediate_size * model.hidden_size


def share_of(op: Op, model: ModelSpec, inputs: Sequence[Meta]) -> Share | None:
    """What `op` computes of its layer; None if nobody knows: it is an operation of a package."""
    return op.share(model, inputs) if isinstance(op, Operation) else NOTHING if op.layer < 0 else None


@lru_cache(maxsize=65536)
def piece_of(
    layer: int, part: Part, axis: Axis = "all", start: int = 0, stop: int = 0, bare: bool = False
) -> Slice:
    """The slice with these fields (`bare`: without norm and output bias), from a cache: operations need the
    same few in every step.
    """
    return Slice(layer=layer, part=part, axis=axis, start=start, stop=stop, bare=bare)


def norm_piece(layer: int, part: LayerPart) -> Slice:
    """The slice of a part's norm alone: an empty range, because norms belong to every slice of the part."""
    return piece_of(layer, part, "heads" if part == "attention" else "columns", 0, 0)


def alike_in_cost(op: Op, model: ModelSpec) -> Op:
    """One operation for all that cost the same whatever their inputs: on the first layer of its kind, with a
    KV cache of any name. A ragged batch stays as it is: what it costs depends on its sequences.
    """
    own = getattr(op, "__dataclass_fields__", {})
    changed: dict[str, Any] = {}
    if op.layer >= 0 and "layer" in own:
        changed["layer"] = first_alike(model, op.layer)
    if isinstance(op.cache, str) and "cache" in own:
        changed["cache"] = "any"
    alike: Any = op
    return replace(alike, **changed) if changed else op


@lru_cache(maxsize=4096)
def costs_of(op: Op, model: ModelSpec, inputs: tuple[Meta, ...]) -> Callable[[int], Cost]:
    """`op.cost` by the number of cached rows. It remembers the last few: the devices of a step ask for the
    same ones one after the other, and to hash a model takes longer than most costs.
    """
    return lru_cache(maxsize=64)(partial(op.cost, model, inputs))


def cost_of(op: Op, model: ModelSpec, inputs: tuple[Meta, ...], cached: int) -> Cost:
    """`op.cost`, remembered."""
    return costs_of(op, model, inputs)(cached)
