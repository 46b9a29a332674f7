"""Check plans made by hand, and write plans as if they were made by hand. Pure.

The amounts must be those of the model, on workers of the cluster. Everything else is checked as in any plan:
every part of the model once, and enough memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.domain.by_hand import DeviceShare, EditablePlan, PlanByHand, Unit, UnitSize
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.program.strategy import Params, Strategy
from engine.strategies.shared.shares import bounds_of, largest_remainder, named_worker
from engine.strategies.shared.stages import Stage, consecutive
from engine.strategies.shared.tensor_parallel import Bounds, ShareLayout

WORDS: Mapping[Unit, str] = {
    "layers": "layers",
    "heads": "attention heads",
    "columns": "feed-forward columns",
    "experts": "experts",
    "rows": "rows",
    "lent_heads": "lent heads",
}
SUM_TOLERANCE = 1e-9


def whole_of(model: ModelSpec, unit: Unit) -> int | None:
    """How many of `unit` there are to divide; None for weights and limits, which have no given sum."""
    sizes: dict[Unit, int] = {
        "layers": model.num_layers,
        "heads": model.num_heads,
        "columns": model.intermediate_size,
        "experts": model.num_experts,
    }
    return sizes.get(unit)


def check_whole(
    name: str, model: ModelSpec, shares: Sequence[DeviceShare], unit: Unit, step: int = 1
) -> None:
    """Check that the shares together are all of `unit`, each in whole steps; raises `PlanError`."""
    given, whole = sum(share.amount(unit) for share in shares), whole_of(model, unit)
    if given != whole:
        raise PlanError(
            f"{name}: the plan made by hand divides {given:g} {WORDS[unit]}, and {model.name} has {whole}: "
            "give every one to one device."
        )
    for share in shares:
        if share.amount(unit) % step:
            raise PlanError(
                f"{name}: {share.device} gets {share.amount(unit):g} {WORDS[unit]}, which are divided in "
                f"steps of {step} here: give it a multiple of {step}."
            )


def workers_of(name: str, cluster: ClusterSpec, devices: Sequence[str]) -> tuple[int, ...]:
    """The ranks of these devices. Raises `PlanError` for a terminal, `SpecError` for an unknown one."""
    ranks = tuple(cluster.rank(device) for device in devices)
    for rank, device in zip(ranks, devices, strict=True):
        if rank not in cluster.workers:
            raise PlanError(f"{name}: {device} computes nothing, and the plan made by hand gives it a share.")
    return ranks


def stages_by_hand(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    plan: PlanByHand,
    most: Mapping[int, int] | None = None,
    source_first: bool = True,
) -> tuple[Stage, ...]:
    """The layers of each device as stages, in the order of the plan.

    `most` has the layers for which each worker has memory, by rank. With `source_first` the source has the
    first layers or none. Raises `PlanError`.
    """
    check_whole(name, model, plan.devices, "layers")
    given = [share for share in plan.devices if share.layers]
    ranks = workers_of(name, cluster, [share.device for share in given])
    if source_first and cluster.source_rank in ranks[1:]:
        raise PlanError(
            f"{name}: {cluster.source} is the source and has layers that are not the first: put its "
            "stage first."
        )
    for rank, share in zip(ranks, given, strict=True):
        if most is not None and share.layers > most.get(rank, 0):
            raise PlanError(
                f"{name}: {share.device} has memory for {most.get(rank, 0)} layers, and the plan made by "
                f"hand gives it {share.layers}: give it fewer."
            )
    return consecutive(ranks, [share.layers for share in given])


def bounds_by_hand(
    name: str,
    cluster: ClusterSpec,
    model: ModelSpec,
    plan: PlanByHand,
    order: Sequence[int] = (),
    head_step: int = 1,
) -> Bounds:
    """Heads and columns of each named device, in this `order` of ranks, else in that of the plan; heads come
    in multiples of `head_step`. Raises `PlanError`.
    """
    check_whole(name, model, plan.devices, "heads", head_step)
    check_whole(name, model, plan.devices, "columns")
    workers_of(name, cluster, [share.device for share in plan.devices])
    given = plan.devices
    if order:
        given = tuple(sorted(given, key=lambda share: order.index(cluster.rank(share.device))))
    return Bounds(
        tuple(cluster.rank(share.device) for share in given),
        bounds_of([share.heads for share in given]),
        bounds_of([share.columns for share in given]),
    )


def ratios_by_hand(
    name: str, cluster: ClusterSpec, plan: PlanByHand
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Ranks in the plan's order, and their shares of the positions. Raises `PlanError` if none gets any."""
    total = sum(share.rows for share in plan.devices)
    if not total:
        raise PlanError(f"{name}: the plan made by hand gives no device any rows: give one device some.")
    if abs(total - 1) < SUM_TOLERANCE:  # shares already: division would change their last digits
        total = 1
    workers_of(name, cluster, [share.device for share in plan.devices])
    ranks = tuple(cluster.rank(share.device) for share in plan.devices)
    return ranks, tuple(share.rows / total for share in plan.devices)


def wanted_device(
    name: str, cluster: ClusterSpec, model: ModelSpec, device: str, plan: PlanByHand | None
) -> int | None:
    """The rank of the one device that computes, by the parameter `device` or a plan made by hand; None if
    neither says one. Raises `SpecError` for a device that is no worker, `PlanError` for several.
    """
    named = named_worker(cluster, device, f"parameters of {name}, device")
    if plan is None:
        return named
    check_whole(name, model, plan.devices, "layers")
    given = [share.device for share in plan.devices if share.layers]
    if len(given) > 1:
        raise PlanError(
            f"{name}: it computes on one device, and the plan made by hand gives layers to {len(given)}: "
            "give all layers to one."
        )
    (rank,) = workers_of(name, cluster, given)
    if named not in (None, rank):
        raise PlanError(
            f"{name}: device is {device}, and the plan made by hand has all layers on {given[0]}: leave one "
            "of the two empty."
        )
    return rank


def of_device(cluster: ClusterSpec, model: ModelSpec, rank: int) -> PlanByHand:
    """All layers on one device."""
    return PlanByHand(devices=(DeviceShare(device=cluster.devices[rank].name, layers=model.num_layers),))


def of_stages(cluster: ClusterSpec, stages: Sequence[Stage]) -> PlanByHand:
    """The layers of a pipeline's stages."""
    shares = [
        DeviceShare(device=cluster.devices[stage.device].name, layers=stage.num_layers) for stage in stages
    ]
    return PlanByHand(devices=tuple(shares))


def of_shares(
    cluster: ClusterSpec, layout: ShareLayout, row_weights: Sequence[float] | None = None
) -> PlanByHand:
    """Heads and columns of a group's members, and their `row_weights` for dividing rows."""
    shares = [
        DeviceShare(
            device=cluster.devices[rank].name,
            heads=layout.heads[i + 1] - layout.heads[i],
            columns=layout.columns[i + 1] - layout.columns[i],
            rows=0 if row_weights is None else row_weights[i],
        )
        for i, rank in enumerate(layout.group)
    ]
    return PlanByHand(devices=tuple(shares))


def editable(
    chosen: Strategy, cluster: ClusterSpec, model: ModelSpec, plan: Plan, num_rows: int, params: Params
) -> EditablePlan:
    """`plan` for an editor; shares of rows become rows of a prompt that has `num_rows`. Raises `PlanError` if
    the strategy takes no plans made by hand.
    """
    written = chosen.by_hand(cluster, model, plan)
    if "rows" in chosen.Params.units:
        rows = largest_remainder(num_rows, [share.rows for share in written.devices])
        shares = [
            share.model_copy(update={"rows": count})
            for share, count in zip(written.devices, rows, strict=True)
        ]
        written = written.model_copy(update={"devices": tuple(shares)})
    steps = chosen.hand_steps(model, params)
    units: tuple[Unit, ...] = chosen.Params.units
    return EditablePlan(
        plan=written,
        units=tuple(
            UnitSize(name=unit, whole=whole_of(model, unit), step=steps.get(unit, 1)) for unit in units
        ),
    )
