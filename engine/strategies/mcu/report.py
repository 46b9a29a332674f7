"""What the microcontrollers did: time and energy of a block by both accountings, and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt, layouts_of
from engine.domain.model import ModelSpec
from engine.domain.units import human_j, human_s
from engine.domain.values import Count, NonNegative, Value
from engine.strategies.mcu.estimate import BlockEstimate, Regime
from engine.strategies.mcu.plan import Phase, TreeLayout
from engine.strategies.mcu.published import published


class BlockFigures(Value):
    """One block in one phase: `rows` new rows over `seen` rows. Ratios are estimate / published, by the
    paper's accounting; None where nothing is published.
    """

    phase: Phase
    rows: Count
    seen: Count
    estimate: BlockEstimate
    published_s: NonNegative | None = None
    published_j: NonNegative | None = None
    ratio_s: NonNegative | None = None
    ratio_j: NonNegative | None = None


class McuBlocks(Value):
    """One plan. `is_calibrated`: the chips' efficiencies are fitted to published figures, not measured."""

    time_s: NonNegative
    chips: Count
    regime: Regime
    is_calibrated: bool
    blocks: tuple[BlockFigures, ...]


class McuReport(MethodReport):
    """The plans of a run in order."""

    kind: Literal["mcu"] = "mcu"
    plans: tuple[McuBlocks, ...]

    @classmethod
    def of(cls, cluster: ClusterSpec, model: ModelSpec, plans: Sequence[PlanAt]) -> McuReport:
        return cls(plans=tuple(_blocks(cluster, model, *one) for one in layouts_of(plans, TreeLayout)))

    def lines(self) -> tuple[str, ...]:
        return tuple(line for plan in self.plans for block in plan.blocks for line in _lines(plan, block))


def _blocks(cluster: ClusterSpec, model: ModelSpec, time_s: float, layout: TreeLayout) -> McuBlocks:
    points = [point for rank in layout.group for point in cluster.devices[rank].efficiencies]
    return McuBlocks(
        time_s=time_s,
        chips=len(layout.group),
        regime=layout.regime,
        is_calibrated=any(point.basis == "fitted" for point in points),
        blocks=tuple(
            _figures(model, len(layout.group), phase, estimate) for phase, estimate in layout.block.items()
        ),
    )


def _figures(model: ModelSpec, chips: int, phase: Phase, estimate: BlockEstimate) -> BlockFigures:
    said = published(model, chips, estimate.rows, estimate.seen)
    block_s, block_j = (said.block_s, said.block_j) if said else (None, None)
    return BlockFigures(
        phase=phase,
        rows=estimate.rows,
        seen=estimate.seen,
        estimate=estimate,
        published_s=block_s,
        published_j=block_j,
        ratio_s=estimate.paper_s / block_s if block_s else None,
        ratio_j=estimate.energy_j / block_j if block_j else None,
    )


def _lines(plan: McuBlocks, block: BlockFigures) -> tuple[str, ...]:
    told = block.estimate
    fitted = "; efficiencies fitted to published figures" if plan.is_calibrated else ""
    chips = "1 chip" if plan.chips == 1 else f"{plan.chips} chips"
    parts = (
        ("computing", told.compute_j),
        ("on-chip memory", told.on_chip_j),
        ("off-chip memory", told.off_chip_j),
        ("links", told.link_j),
    )
    lines: tuple[str, ...] = (
        f"Per block, {block.phase} on {chips} (weights {plan.regime}{fitted}): "
        f"{human_s(told.paper_s)} by the paper's accounting, {human_s(told.steady_s)} in steady state.",
    )
    if told.energy_j:
        whole = ", ".join(f"{name} {human_j(joules)}" for name, joules in parts)
        lines = (*lines, f"Energy per block: {human_j(told.energy_j)}, of which {whole}.")
    if told.tiles_s:
        lines = (
            *lines,
            f"Per block, with tiles of L1 ({human_s(told.tiles_s)}) and intermediate tensors in L3 "
            f"({human_s(told.tensors_s)}): {human_s(told.full_s)} and {human_j(told.full_j)}.",
        )
    if block.published_s is None or block.ratio_s is None:
        return lines
    said = f"Published per block: {human_s(block.published_s)}, ours / published {block.ratio_s:.3f}"
    if block.published_j is not None and block.ratio_j is not None:
        said += f"; {human_j(block.published_j)}, ours / published {block.ratio_j:.3f}"
    return (*lines, f"{said}.")
