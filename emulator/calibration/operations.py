"""Times the operations of whole models on this host, to compare the compute models with.

An operation is timed between the others of its model and on their results, because its time depends on which
of its weights and inputs the caches still hold.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product as combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.calibration.children import at_once
from emulator.calibration.shapes import THOROUGH, Extent
from emulator.calibration.stopwatch import CLOCK_S, processor_s, trimmed_mean
from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.models import catalogue
from engine.ops.core import Add, Attention, Block, Embed, FeedForward, Head, Residual
from engine.ops.kernels import Kernel
from engine.ops.operation import Op
from engine.ops.positions import PositionBlock
from engine.ops.sizes import model_bytes
from engine.ops.tensors import Meta

if TYPE_CHECKING:  # torch takes a while to import
    from engine.models.weights.store import WeightStore

MODELS = ("bert-large", "bert-base", "gpt2", "tinyllama-42m", "minilm", "demo-lm")
ROWS = (1, 8, 34, 128, 200)
CACHED = (64,)  # rows of the KV cache that a decoding step finds
SHARDS = 6


class TimedOperation(NamedTuple):
    """An operation that was timed: `seconds` of one core for an operation on inputs of `rows` rows, and the
    kernels it is made of.
    """

    model: str
    operation: str
    rows: int
    kernels: tuple[Kernel, ...]
    seconds: float


class _Step(NamedTuple):
    """One operation of a sequence and the shapes of its inputs."""

    label: str
    op: Op
    inputs: tuple[Meta, ...]


def time_operations(
    stores: Sequence[WeightStore],
    rows: Sequence[int] = ROWS,
    cached: Sequence[int] = CACHED,
    extent: Extent = THOROUGH,
) -> list[TimedOperation]:
    """Every kind of operation of each model, at each number of rows; a single row of a causal model with each
    number of `cached` rows before it, and never of an encoder, which has nothing to decode. Sets torch to one
    thread.
    """
    timed = []
    for store, sequence in combinations(stores, extent.sequences):
        for count in rows:
            if count > 1 or store.model.causal:
                for before in cached if count == 1 else (0,):
                    timed += time_sequence(store, sequence, count, before, extent=extent)
        for piece in list(store.held):
            store.evict(piece)
    return timed


def hold(store: WeightStore, pieces: Iterable[Slice]) -> None:
    """Load what `store` lacks, and copy it as devices at native speed do."""
    missing = [piece for piece in pieces if piece not in store.held]
    for piece in missing:
        store.load(piece)
    if missing:
        store.own()


def draw(stores: Sequence[WeightStore], working_set_bytes: int) -> None:
    """Draw what the operations of all `stores` need into the files that these share, on all cores at once:
    nothing is timed meanwhile.
    """
    at_once([partial(_drawn, store, working_set_bytes) for store in stores])


def _drawn(store: WeightStore, working_set_bytes: int) -> bool:
    for step in _blocks(store.model, working_layers(store.model, working_set_bytes), 1, None):
        for piece in step.op.slices(store.model):
            store.load(piece)
    return True


def random_weights(name: str) -> WeightStore:
    """A weight store of a model of the catalogue with random weights; nothing is loaded yet."""
    from engine.models.weights.store import WeightStore

    model, weights = catalogue.resolve(name, "random")
    return WeightStore(model, weights, 0)


def time_sequence(
    store: WeightStore,
    sequence: str,
    rows: int,
    cached: int,
    before: Callable[[], object] | None = None,
    extent: Extent = THOROUGH,
) -> list[TimedOperation]:
    """Time the kinds of operations of a sequence (a name in `SEQUENCES`), run in turn over the model's
    layers.

    Causal models find `cached` rows in their KV caches; with none, every turn makes the caches anew, as a
    prompt does. `before` runs before each operation, untimed. Empty if the sequence needs more rows.
    """
    import torch

    from engine.ops.torch_kernels import dispatch as arithmetic
    from engine.ops.torch_kernels.storage import KVCache

    torch.set_num_threads(1)
    model = store.model
    layers = working_layers(model, extent.set_bytes(rows))
    steps = list(SEQUENCES[sequence](model, layers, rows, "check" if model.causal else None))
    hold(store, (piece for step in steps for piece in step.op.slices(model)))
    caches: dict[tuple[str, int], KVCache] = {}
    times: dict[str, list[float]] = {step.label: [] for step in steps}
    with torch.inference_mode():
        numbers = {x: _tensor(x) for step in steps for x in step.inputs}
        recent = {x: deque([_tensor(x), _tensor(x)], maxlen=2) for x in numbers}
        for step in steps:
            if (
                cached
                and step.op.cache
                and isinstance(step.op.cache, str)
                and not caches.get((step.op.cache, step.op.layer))
            ):
                x = _tensor(Meta((1, cached, model.hidden_size), model.dtype))
                arithmetic.run(step.op, model, store, caches, (x,))
        turns, end_s = 0, time.perf_counter() + extent.sequence_s
        while turns < extent.turns + extent.warm_up_turns or time.perf_counter() < end_s:
            turns += 1
            if not cached:
                caches.clear()
            for step in steps:
                inputs = _newest(recent, step.inputs)
                if cached and step.op.cache and isinstance(step.op.cache, str):
                    caches[step.op.cache, step.op.layer].rows = cached
                if before is not None:
                    before()
                began_s = processor_s()
                result = arithmetic.run(step.op, model, store, caches, inputs)
                if turns > extent.warm_up_turns:
                    times[step.label].append(processor_s() - began_s)
                shape = Meta(tuple(result.shape), model.dtype)
                if (
                    shape in recent
                ):  # in the cache like the result, but with numbers that neither grow nor vanish
                    recent[shape].append(result.copy_(numbers[shape]))
    first = {step.label: step for step in reversed(steps)}
    return [
        TimedOperation(
            model.name,
            label,
            rows,
            first[label].op.cost(model, first[label].inputs, cached if first[label].op.cache else 0).kernels,
            trimmed_mean(values) - CLOCK_S,
        )
        for label, values in times.items()
    ]


def _newest(recent: dict[Meta, deque[Any]], inputs: Sequence[Meta]) -> tuple[Any, ...]:
    """A tensor per input: the last result of its shape, then the one before that."""
    return tuple(recent[x][-1 - inputs[:at].count(x)] for at, x in enumerate(inputs))


def _blocks(model: ModelSpec, layers: range, rows: int, cache: str | None) -> Iterator[_Step]:
    """The operations of one device with the whole model: the head of a decode step leaves little of the
    layers in any cache.
    """
    x = _hidden(model, rows)
    yield _embed(rows)
    for layer in layers:
        yield _Step("block", Block(layer, cache), (x,))
    yield from _heads(model, rows, x)


def _parts(model: ModelSpec, layers: range, rows: int, cache: str | None) -> Iterator[_Step]:
    x = _hidden(model, rows)
    yield _embed(rows)
    for layer in layers:
        yield _Step("attention", Attention(layer, 0, model.num_heads, True, cache), (x,))
        yield _Step("residual", Residual(layer, "attention"), (x, x))
        yield _Step("ffn", FeedForward(layer, 0, model.intermediate_size, True), (x,))
        yield _Step("residual", Residual(layer, "ffn"), (x, x))
    yield from _heads(model, rows, x)


def _embed(rows: int) -> _Step:
    return _Step("embed", Embed(0), (Meta((1, rows), "int64"),))


def _heads(model: ModelSpec, rows: int, x: Meta) -> Iterator[_Step]:
    """The head, which has one row, if there is one and the others have one row, too."""
    if model.has_head and rows == 1:
        yield _Step("head", Head(), (x,))


def _halves(model: ModelSpec, layers: range, rows: int, cache: str | None) -> Iterator[_Step]:
    """The operations on half the heads and half the columns of every layer, as on one of two tensor-parallel
    devices, then the other half of every layer: the two devices share the largest cache. The other half of a
    layer does not come right after the first, which would leave it all but its weights in the nearest caches.
    """
    x = _hidden(model, rows)
    heads, cols = model.num_heads // 2, model.intermediate_size // 2
    for half, kept in enumerate((cache, f"{cache} 2" if cache else None)):
        for layer in layers:
            attention = Attention(layer, half * heads, (half + 1) * heads, not half, kept)
            yield _Step("half of attention", attention, (x,))
            yield _Step("add", Add(), (x, x))
            ffn = FeedForward(layer, half * cols, (half + 1) * cols, not half)
            yield _Step("half of ffn", ffn, (x,))
            yield _Step("add", Add(), (x, x))
        yield from _heads(model, rows, x)


def _shards(model: ModelSpec, layers: range, rows: int, cache: str | None) -> Iterator[_Step]:
    """Position shards, as on sequence-parallel devices; the last of a causal model attends to most rows."""
    if rows < SHARDS * SHARDS:
        return
    x, size = _hidden(model, rows), -(-rows // SHARDS)
    for layer in layers:
        for shard in range(SHARDS):
            start, stop = shard * size, min(rows, (shard + 1) * size)
            if stop - start < size:
                continue
            if model.causal:
                yield _Step(f"position shard {shard + 1}", PositionBlock(layer, start, stop, stop), (x,))
            else:
                yield _Step("position shard", PositionBlock(layer, start, stop, rows), (x,))
                reordered = PositionBlock(layer, start, stop, rows, "reorder", "reorder")
                yield _Step("position shard, reordered", reordered, (x,))


SEQUENCES: dict[str, Callable[[ModelSpec, range, int, str | None], Iterator[_Step]]] = {
    "blocks": _blocks,
    "parts": _parts,
    "halves": _halves,
    "shards": _shards,
}


def working_layers(model: ModelSpec, working_set_bytes: int) -> range:
    """Enough layers that weights have left the caches when their turn comes again, or all; two at least, so
    that both halves of a layer do not follow each other.
    """
    per_layer = model_bytes(model) // model.num_layers
    return range(min(model.num_layers, max(2, -(-working_set_bytes // per_layer))))


def _hidden(model: ModelSpec, rows: int) -> Meta:
    return Meta((1, rows, model.hidden_size), model.dtype)


def _tensor(x: Meta) -> Any:
    import torch

    return torch.zeros(x.shape, dtype=torch.int64) if x.dtype == "int64" else torch.randn(x.shape)
