"""Accounts for the memory of one emulated device: weights, KV caches, working sets and what a strategy keeps
besides, in bytes.

Both worlds keep the same ledger, so their peaks agree to the byte. The host's own memory plays no part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import OutOfMemory, PlanError, WrongProgram
from engine.domain.model import ModelSpec, draft_of
from engine.domain.plan import Placement, Slice, covers
from engine.domain.units import human, needs_and_has
from engine.ops.layers import Layers
from engine.ops.operation import Cost, Op
from engine.ops.ragged import Piece, Ragged
from engine.ops.sizes import table_bytes, weight_bytes
from engine.ops.tensors import Meta, payload_bytes

ENDS = ("embed", "lm_head")
ON_CHIP = "give it more on_chip_weight_bytes, or add devices that take a share"
"""What may be done where weights do not fit on a chip."""
NOTHING_CACHED = (0, 0)
"""Rows and bytes of a KV cache that does not exist yet."""


def is_of_cache(name: str, cache: str) -> bool:
    """Whether the KV cache `name` is `cache` or holds some of its heads: then it is called `cache/…`."""
    return name == cache or name.startswith(f"{cache}/")


def is_on_chip(piece: Slice) -> bool:
    """Whether `piece` counts among the weights that `on_chip_weight_bytes` limits: those of layers, but not
    a norm alone.
    """
    return piece.layer >= 0 and (piece.axis == "all" or piece.start < piece.stop)


def check_on_chip(cluster: ClusterSpec, model: ModelSpec, plan: Placement) -> None:
    """Check the weights of layers that are resident from the start against each device's
    `on_chip_weight_bytes`; raises `PlanError` with every device that has too little.
    """
    short = []
    for rank, device in enumerate(cluster.devices):
        limit = device.on_chip_weight_bytes
        if limit is None:
            continue
        need = sum(weight_bytes(model, piece) for piece in {*plan.held_by(rank)} if is_on_chip(piece))
        if need > limit:
            short.append(f"{device.name} {needs_and_has(need, limit, ' for weights of layers on chip')}")
    if short:
        raise PlanError(f"{plan.strategy}: {', '.join(short)}: {ON_CHIP}.")


class Ledger:
    """Weights, KV cache and the working set of the running operation, against `memory_bytes`; and weights of
    layers against `on_chip_bytes`, where a device has such a limit.

    Raises `OutOfMemory` at the first byte too many.
    """

    def __init__(
        self, device: str, memory_bytes: float, model: ModelSpec, on_chip_bytes: float | None = None
    ):
        self.device = device
        self.memory_bytes = memory_bytes
        self.on_chip_bytes = on_chip_bytes
        self.model = model
        self.resident: dict[Slice, int] = {}
        self._of_layer: defaultdict[int, dict[Slice, None]] = defaultdict(dict)  # the resident slices of each
        self._met: dict[int, set[Op]] = {}  # operations whose weights are resident, by their layer
        self._met_until: dict[
            int, tuple[Slice, set[Op]]
        ] = {}  # by layer: a slice that was evicted, and those
        # operations that have their weights again when it is loaded again, if nothing else was evicted since
        self._met_together: set[Layers] = set()  # layers whose weights are all resident
        self._sizes: dict[Slice, int] = {}
        self.cached: dict[tuple[str, int], tuple[int, int]] = {}  # (cache, layer) → rows, bytes
        self.on_disk: dict[tuple[str, int], int] = {}  # (cache, layer) → rows
        self.dropped: dict[tuple[str, int], tuple[int, int]] = {}  # … → rows and bytes that only the disk has
        self.reserved: dict[str, int] = {}
        self.weights_bytes = self.kv_bytes = self.reserved_bytes = self.peak_bytes = 0

    @property
    def resident_bytes(self) -> int:
        """Weights, KV caches and what a strategy keeps, in bytes."""
        return self.weights_bytes + self.kv_bytes + self.reserved_bytes

    def load(self, piece: Slice) -> int:
        """Account for `piece`; returns its bytes (0 if it is resident already)."""
        if piece in self.resident:
            return 0
        size = self._sizes.get(piece, -1)
        if size < 0:
            size = self._sizes[piece] = weight_bytes(self.model, piece)
        if piece.part in ENDS and self._model_of(piece).tied_head:
            size = max(0, size - self._shared_embedding_bytes(piece))
        self.resident[piece] = size
        self._of_layer[piece.layer][piece] = None
        layer = _layer_of_ops(piece)
        evicted, met = self._met_until.pop(layer, (None, None))
        if met and (evicted is piece or evicted == piece):
            self._met.setdefault(layer, set()).update(met)
        self.weights_bytes += size
        self._check(0, "weights")
        if self.on_chip_bytes is not None:
            self._check_on_chip(self.on_chip_bytes)
        return size

    def _check_on_chip(self, limit_bytes: float) -> None:
        need = sum(size for piece, size in self.resident.items() if is_on_chip(piece))
        if need > limit_bytes:
            raise OutOfMemory(
                self.device, need, int(limit_bytes), "weights of layers on chip", remedy=ON_CHIP
            )

    def _model_of(self, piece: Slice) -> ModelSpec:
        return draft_of(self.model) if piece.draft else self.model

    def _shared_embedding_bytes(self, piece: Slice) -> int:
        """Bytes of the embedding table that a tied head shares: of all of it, or of the head's rows."""
        ends = [one for one in self.resident if one.part in ENDS and one.draft == piece.draft]
        if not ends:
            return 0
        heads = [end for end in (piece, *ends) if end.part == "lm_head" and end.axis == "columns"]
        rows = heads[0].stop - heads[0].start if heads else self.model.vocab_size
        return table_bytes(self._model_of(piece), rows)

    def evict(self, piece: Slice) -> None:
        """Remove `piece` from memory."""
        layer = _layer_of_ops(piece)
        self._met_until[layer] = (piece, self._met.pop(layer, set()))
        if self._met_together:
            away = [one for one in self._met_together if one.has_layer(piece.layer)]
            self._met_together.difference_update(away)
        self.weights_bytes -= self.resident.pop(piece, 0)
        self._of_layer[piece.layer].pop(piece, None)

    def need(self, op: Op) -> None:
        """Check that the weights that `op` needs are in memory; raises `PlanError`."""
        met = self._met.get(op.layer)
        if met is None:
            met = self._met[op.layer] = set()
        elif op in met:
            return
        for need in op.slices(self.model):
            if need not in self.resident and not any(
                covers(have, need) for have in self._of_layer[need.layer]
            ):
                raise PlanError(
                    f"{self.device}: {op.name} of layer {op.layer} needs {need.part} {need.axis} "
                    f"{need.start}:{need.stop}, which is not resident: the plan must place or load it."
                )
        if not isinstance(op.cache, Ragged):  # no two steps have the same sequences and rows
            met.add(op)

    def rows(self, op: Op) -> int:
        """Rows already in the KV cache that `op` names."""
        return self.cached.get((op.cache, op.layer), (0, 0))[0] if isinstance(op.cache, str) else 0

    def run(self, op: Op, inputs: Sequence[Meta], cost: Cost) -> None:
        """Account for one run of `op`, of this `cost`: its working set while it runs, its new KV rows."""
        self.enter(op, working_bytes(inputs, cost), cost.kv_rows, cost.kv_bytes)

    def enter(self, op: Op, working_bytes: int, kv_rows: int, kv_bytes: int) -> None:
        """`run` an operation whose sizes are known already: it adds `kv_rows` to its cache."""
        self.need(op)
        if isinstance(op.cache, Ragged):
            self._enter_ragged(op, op.cache.pieces if kv_rows else (), kv_bytes)  # none without heads
        elif op.cache:
            key = (op.cache, op.layer)
            if key in self.dropped:
                raise PlanError(
                    f"{self.device}: {op.name} of layer {op.layer} needs all rows of the KV cache "
                    f"{op.cache}, and {self.dropped[key][0]} of them are only on disk: fetch them first."
                )
            rows, size = self.cached.get(key, (0, 0))
            self.cached[key] = (rows + kv_rows, size + kv_bytes)
            self.kv_bytes += kv_bytes
        need_bytes = self.weights_bytes + self.kv_bytes + self.reserved_bytes + working_bytes
        if need_bytes > self.peak_bytes:
            self._check(working_bytes, f"{op.name} of layer {op.layer}" if op.layer >= 0 else op.name)

    def _enter_ragged(self, op: Op, pieces: Sequence[Piece], kv_bytes: int) -> None:
        """Add the new rows of every sequence to its own KV cache, `kv_bytes` in all."""
        row_bytes = kv_bytes // max(1, sum(piece.rows for piece in pieces))
        for cache, start, new in pieces:
            rows, size = self.cached.get((cache, op.layer), NOTHING_CACHED)
            if rows != start:
                raise WrongProgram(
                    f"{self.device}: {op.name} of layer {op.layer} adds rows {start}:{start + new} to the KV "
                    f"cache {cache}, which has {rows}: each sequence passes through a layer row after row.",
                    self.device,
                )
            self.cached[cache, op.layer] = (rows + new, size + new * row_bytes)
        self.kv_bytes += kv_bytes

    def rows_of_all(self, layers: Layers) -> int | None:
        """Rows already in each KV cache of `layers`; None if they differ."""
        if not layers.caches:
            return 0
        cached = self.cached
        found = {cached.get(key, NOTHING_CACHED) for key in layers.caches}
        return found.pop()[0] if len(found) == 1 and not self.dropped else None

    def enter_all(self, layers: Layers, working_bytes: int, kv_rows: int, kv_bytes: int) -> None:
        """`enter` one operation after the other, all with the same sizes, `kv_rows` and rows so far. What
        does not fit is found, but the error is about the last operation.
        """
        if layers not in self._met_together:
            for op in layers.ops:
                self.need(op)
            self._met_together.add(layers)
        caches = layers.caches
        if caches:
            rows, size = self.cached.get(caches[0], NOTHING_CACHED)
            self.cached.update(dict.fromkeys(caches, (rows + kv_rows, size + kv_bytes)))
            self.kv_bytes += len(caches) * kv_bytes
        if self.resident_bytes + working_bytes > self.peak_bytes:
            self._check(working_bytes, f"{layers.ops[-1].name} of layer {layers.ops[-1].layer}")

    def store_rows(self, cache: str, layer: int, rows: int) -> int:
        """Account for writing the oldest `rows` rows of a KV cache to disk; returns the bytes that are new
        there.

        Raises `PlanError` if they are not in memory.
        """
        have, size = self.cached.get((cache, layer), (0, 0))
        if (cache, layer) in self.dropped or rows > have:
            raise PlanError(
                f"{self.device}: rows 0:{rows} of layer {layer} of the KV cache {cache} cannot be stored: in "
                f"memory are the last {have}; fetch the others first."
            )
        before = self.on_disk.get((cache, layer), 0)
        self.on_disk[cache, layer] = max(before, rows)
        return max(0, rows - before) * (size // have)

    def drop_rows(self, cache: str, layer: int) -> int:
        """Remove rows that are on disk from memory; returns their number. Raises `PlanError` if none are."""
        rows = self.on_disk.get((cache, layer), 0)
        if not rows or (cache, layer) in self.dropped:
            raise PlanError(
                f"{self.device}: layer {layer} of the KV cache {cache} has no rows that are in memory and on "
                "disk: store or fetch them first."
            )
        have, size = self.cached[cache, layer]
        moved = rows * (size // have)
        self.cached[cache, layer] = (have - rows, size - moved)
        self.dropped[cache, layer] = (rows, moved)
        self.kv_bytes -= moved
        return rows

    def fetch_rows(self, cache: str, layer: int) -> int:
        """Put dropped rows back into memory; returns their bytes (0 if none were dropped)."""
        rows, moved = self.dropped.pop((cache, layer), (0, 0))
        if rows:
            have, size = self.cached[cache, layer]
            self.cached[cache, layer] = (have + rows, size + moved)
            self.kv_bytes += moved
            self._check(0, "KV rows from disk")
        return moved

    def reserve(self, name: str, size_bytes: int) -> None:
        """Account for `size_bytes` that a strategy keeps under `name`, in place of what it had there
        before.
        """
        self.reserved_bytes += size_bytes - self.reserved.get(name, 0)
        self.reserved[name] = size_bytes
        self._check(0, name)

    def release(self, cache: str) -> None:
        """Remove a finished sequence's KV cache, also from disk."""
        for rows in (self.on_disk, self.dropped):
            for key in [key for key in rows if key[0] == cache]:
                del rows[key]
        for key in [key for key in self.cached if is_of_cache(key[0], cache)]:
            self.kv_bytes -= self.cached.pop(key)[1]

    def release_all(self) -> None:
        """Remove all KV caches and what a strategy keeps."""
        self.cached.clear()
        self.on_disk.clear()
        self.dropped.clear()
        self.reserved.clear()
        self.kv_bytes = self.reserved_bytes = 0

    def empty(self) -> None:
        """Make the memory as it is after a restart."""
        self.release_all()
        self.resident.clear()
        self._of_layer.clear()
        self._met.clear()
        self._met_until.clear()
        self._met_together.clear()
        self.weights_bytes = 0

    def _check(self, working_bytes: int, what: str) -> None:
        need = self.resident_bytes + working_bytes
        self.peak_bytes = max(self.peak_bytes, need)
        if need > self.memory_bytes:
            raise OutOfMemory(
                self.device,
                need,
                int(self.memory_bytes),
                f"weights {human(self.weights_bytes, 'B')}, KV {human(self.kv_bytes, 'B')} and {what}",
            )


def _layer_of_ops(piece: Slice) -> int:
    """The layer of the operations that need `piece`: those of the draft model are outside the layers."""
    return -1 if piece.draft else piece.layer


def working_bytes(inputs: Sequence[Meta], cost: Cost) -> int:
    """Bytes in memory while an operation runs, besides its weights and KV caches."""
    return sum(payload_bytes(x) for x in inputs) + payload_bytes(cost.output) + cost.scratch_bytes
