"""Estimate time and energy of one Transformer block on microcontrollers by Bochem et al. (DATE 2025).

Of the chips j = 1…N with W_j bytes of a block's weights each:

T_block = max_j (T_comp,j + W_j / BW_on-chip + [streamed] W_j / BW_off-chip) + T_link
T_link  = 2 synchronisations × (up + down the tree), each level one message after another
E_block = N_link E_link + Σ_j (P T_comp,j + N_off-chip,j E_off-chip + N_on-chip,j E_on-chip)   (section V)

A chip's `memory_byte_per_s` and `j_per_memory_byte` are its on-chip memory's (L2 to L1), `disk_byte_per_s`
and `j_per_disk_byte` the off-chip memory's (L3 to L2). Only products count as work. In `paper_s` and
`energy_j` only weights count as traffic; in `full_s` and `full_j`, where the chip's L1 (`tile_memory_bytes`)
is known, all tiles and, where weights are streamed, all intermediate tensors do (`traffic.py`).

There are two ways to count weights that are fetched while the block before runs. "paper": they never delay
anything; only this reproduces the published times. "steady": a block takes at least as long as fetching the
next block's weights. Simulated and real runs behave like "steady".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Slice
from engine.domain.units import transfer_s
from engine.domain.values import Value
from engine.ops.core import Attention, FeedForward
from engine.ops.cost import flops_s
from engine.ops.operation import Op
from engine.ops.sizes import weight_bytes
from engine.ops.tensors import Meta
from engine.strategies.mcu.traffic import block_traffic
from engine.strategies.mcu.tree import Level

Regime = Literal["resident", "double-buffered", "streamed"]
SYNCS_PER_BLOCK = 2


class BlockEstimate(Value):
    """What one block costs, for `rows` new rows over `seen` rows; 0 in stored plans that do not say.

    Seconds are the slowest chip's, joules those of all chips; `paper_s` and `steady_s` are T_block. `edp_j_s`
    is the energy-delay product with `paper_s` as the delay. `tiles_*` are what tiles move between L2 and L1
    beyond each weight once, `tensors_*` intermediate tensors between L3 and L2; `full_*` are with both.
    `off_chip_bytes`: between L3 and L2 in all, of all chips.
    """

    rows: int = 0
    seen: int = 0
    compute_s: float
    on_chip_s: float
    off_chip_s: float
    link_s: float
    paper_s: float
    steady_s: float
    compute_j: float
    on_chip_j: float
    off_chip_j: float
    link_j: float
    energy_j: float
    edp_j_s: float
    tiles_s: float = 0.0
    tensors_s: float = 0.0
    tiles_j: float = 0.0
    tensors_j: float = 0.0
    full_s: float = 0.0
    full_j: float = 0.0
    full_edp_j_s: float = 0.0
    off_chip_bytes: float = 0.0


def regime_of(slice_bytes: int, num_layers: int, on_chip_bytes: float) -> Regime:
    """The place where a chip keeps its weights if its slice of one block has `slice_bytes`."""
    if num_layers * slice_bytes <= on_chip_bytes:
        return "resident"
    return "double-buffered" if 2 * slice_bytes <= on_chip_bytes else "streamed"


def block_slice_bytes(model: ModelSpec, heads: tuple[int, int], columns: tuple[int, int]) -> int:
    """Bytes of one block's heads and columns, without norms and output biases, which only the root has."""
    pieces = (
        Slice(layer=0, part="attention", axis="heads", start=heads[0], stop=heads[1], bare=True),
        Slice(layer=0, part="ffn", axis="columns", start=columns[0], stop=columns[1], bare=True),
    )
    return sum(weight_bytes(model, piece) for piece in pieces if piece.start < piece.stop)


def block_estimate(
    cluster: ClusterSpec,
    model: ModelSpec,
    levels: Sequence[Level],
    shares: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    regime: Regime,
    batch: int,
    rows: int,
    seen: int,
) -> BlockEstimate:
    """What one block costs by the paper's model. `shares` are each chip's rank and the bounds of its tiles of
    heads and of columns. `rows` new rows of each of `batch` sequences attend over `seen` rows.
    """
    chips = [
        _chip_cost(cluster.devices[rank], model, heads, columns, regime, not at, (batch, rows, seen))
        for at, (rank, heads, columns) in enumerate(shares)
    ]
    message_bytes = batch * rows * model.hidden_size * model.element_bytes
    link_s = SYNCS_PER_BLOCK * _tree_s(cluster, levels, message_bytes)
    link_j = SYNCS_PER_BLOCK * _over_tree(levels, lambda a, b: message_bytes * _j_per_byte(cluster, a, b))
    paper_s = max(chip.weights_alone_s for chip in chips) + link_s
    full_s = max(chip.weights_alone_s + chip.tiles_s + chip.tensors_s for chip in chips) + link_s
    compute_j, on_chip_j, off_chip_j, tiles_j, tensors_j = (
        sum(getattr(chip, f"{name}_j") for chip in chips)
        for name in ("compute", "on_chip", "off_chip", "tiles", "tensors")
    )
    energy_j = compute_j + on_chip_j + off_chip_j + link_j
    full_j = energy_j + tiles_j + tensors_j
    off_chip_s = max(chip.off_chip_s for chip in chips)
    return BlockEstimate(
        rows=batch * rows,
        seen=seen,
        compute_s=max(chip.compute_s for chip in chips),
        on_chip_s=max(chip.on_chip_s for chip in chips),
        off_chip_s=off_chip_s,
        link_s=link_s,
        paper_s=paper_s,
        steady_s=max(paper_s, off_chip_s) if regime == "double-buffered" else paper_s,
        compute_j=compute_j,
        on_chip_j=on_chip_j,
        off_chip_j=off_chip_j,
        link_j=link_j,
        energy_j=energy_j,
        edp_j_s=energy_j * paper_s,
        tiles_s=max(chip.tiles_s for chip in chips),
        tensors_s=max(chip.tensors_s for chip in chips),
        tiles_j=tiles_j,
        tensors_j=tensors_j,
        full_s=full_s,
        full_j=full_j,
        full_edp_j_s=full_j * full_s,
        off_chip_bytes=sum(chip.off_chip_bytes for chip in chips),
    )


class _ChipCost(NamedTuple):
    """What a block costs one chip: seconds, joules, and bytes between L3 and L2."""

    compute_s: float
    on_chip_s: float
    off_chip_s: float
    tiles_s: float
    tensors_s: float
    compute_j: float
    on_chip_j: float
    off_chip_j: float
    tiles_j: float
    tensors_j: float
    off_chip_bytes: float
    weights_alone_s: float


def _chip_cost(
    chip: DeviceSpec,
    model: ModelSpec,
    head_tiles: Sequence[int],
    column_tiles: Sequence[int],
    regime: Regime,
    is_root: bool,
    sizes: tuple[int, int, int],
) -> _ChipCost:
    size = block_slice_bytes(model, _ends(head_tiles), _ends(column_tiles))
    fetched = 0 if regime == "resident" or chip.on_chip_weight_bytes is None else size
    more = tensors = 0
    if chip.tile_memory_bytes is not None:
        moved = block_traffic(
            model, _ends(head_tiles), _ends(column_tiles), is_root, sizes, chip.tile_memory_bytes
        )
        more = moved.tiles - moved.weights
        tensors = moved.tensors if regime == "streamed" else 0
    compute_s = _compute_s(chip, model, head_tiles, column_tiles, sizes)
    on_chip_s, off_chip_s = size / chip.memory_byte_per_s, fetched / chip.disk_byte_per_s
    return _ChipCost(
        compute_s=compute_s,
        on_chip_s=on_chip_s,
        off_chip_s=off_chip_s,
        tiles_s=more / chip.memory_byte_per_s,
        tensors_s=tensors / chip.disk_byte_per_s,
        compute_j=chip.watts * compute_s,
        on_chip_j=chip.j_per_memory_byte * size,
        off_chip_j=chip.j_per_disk_byte * fetched,
        tiles_j=chip.j_per_memory_byte * more,
        tensors_j=chip.j_per_disk_byte * tensors,
        off_chip_bytes=fetched + tensors,
        weights_alone_s=compute_s + on_chip_s + (off_chip_s if regime == "streamed" else 0.0),
    )


def _ends(bounds: Sequence[int]) -> tuple[int, int]:
    return (bounds[0], bounds[-1]) if bounds else (0, 0)


def _compute_s(
    chip: DeviceSpec,
    model: ModelSpec,
    head_tiles: Sequence[int],
    column_tiles: Sequence[int],
    sizes: tuple[int, int, int],
) -> float:
    """The products of all tiles at the efficiency of their rows and width; `sizes`: batch, rows, seen."""
    batch, rows, seen = sizes
    x = Meta((batch, rows, model.hidden_size), model.dtype)
    ops: list[Op] = [Attention(0, *heads, False, None, True) for heads in pairwise(head_tiles)]
    ops += [FeedForward(0, *columns, False, True) for columns in pairwise(column_tiles)]
    kernels = (kernel for op in ops for kernel in op.cost(model, (x,), seen - rows).kernels)
    return sum(flops_s(chip, kernel) for kernel in kernels if kernel.kind == "product")


def _tree_s(cluster: ClusterSpec, levels: Sequence[Level], message_bytes: int) -> float:
    """Seconds up and down once: a leader's messages follow each other, the groups of a level run in
    parallel. Sizes are the paper's, without frame headers.
    """

    def pair_s(src: int, dst: int) -> float:
        rate = min(cluster.links[hop.link].rate(hop.forward) for hop in cluster.path(src, dst))
        overhead_s = cluster.devices[src].message_overhead_s
        return transfer_s(message_bytes, rate) + cluster.delay_s(src, dst) + overhead_s

    total_s = 0.0
    for level in levels:
        groups = [list(group) for _, group in groupby(level, key=lambda edge: edge[1])]
        total_s += max(sum(pair_s(member, leader) for member, leader in group) for group in groups)
        total_s += max(sum(pair_s(leader, member) for member, leader in group) for group in groups)
    return total_s


def _over_tree(levels: Sequence[Level], value: Callable[[int, int], float]) -> float:
    return sum(value(member, leader) + value(leader, member) for level in levels for member, leader in level)


def _j_per_byte(cluster: ClusterSpec, src: int, dst: int) -> float:
    return sum(cluster.links[hop.link].j_per_byte for hop in cluster.path(src, dst))
