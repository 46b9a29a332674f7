"""No plan one move away from a best plan is faster by more than 2 %, in the full simulation."""

from itertools import pairwise

import pytest

from bench.strategies.plans import METHODS, draw
from engine.domain.by_hand import PlanByHand
from engine.domain.errors import EdgeLoomError
from engine.planning.search import Shares, moves
from engine.runs.predict import predict, prepare
from engine.strategies.planner.split import COLUMN_STEPS
from engine.strategies.voltage.layout import PositionsLayout
from tests.support.parameter_cases import with_params

BEATEN = 0.98
UNITS = ("heads", "columns", "rows")
FINEST = 10**9
CASES = 2


def shares_of(layout):
    """Amounts of `UNITS`; of Voltage rows, and 1 for who decodes."""
    if isinstance(layout, PositionsLayout):
        decodes = tuple(int(rank == layout.owner) for rank in layout.devices)
        return Shares(layout.devices, (tuple(shard.size for shard in layout.shards), decodes))
    bounds = [getattr(layout, unit) for unit in UNITS if hasattr(layout, unit)]
    return Shares(layout.group, tuple(tuple(b - a for a, b in pairwise(cuts)) for cuts in bounds))


def other_shares(spec, shares):
    """A head, the least columns, or the least rows (a 32nd) of one member for another, or two of them; of
    Voltage also another that decodes.
    """
    model, rows = spec.model, max(1, spec.workload.prompt_tokens // 32)
    least = (model.group_size, model.intermediate_size // COLUMN_STEPS, rows)
    if spec.strategy == "voltage":
        least = (rows, 1)
    return set(moves(shares, least[: len(shares.amounts)], FINEST)) - {shares}


def other_groups(spec, shares):
    """One device more, less, or another, with equal shares, as DeepSpeed has them."""
    group, workers = shares.group, spec.cluster.workers
    others = [rank for rank in workers if rank not in group]
    found = [tuple(kept for kept in group if kept != gone) for gone in group]
    found += [(*group, rank) for rank in others]
    found += [tuple(rank if kept == gone else kept for kept in group) for gone in group for rank in others]
    whole = [sum(unit) for unit in shares.amounts]
    return [
        Shares(some, tuple((size // len(some),) * len(some) for size in whole))
        for some in found
        if some and all(size % len(some) == 0 for size in whole)
    ]


def latency_s(spec, shares):
    """Predicted seconds of these shares; infinity where they have no room."""
    names, decoder, units, amounts = (
        [spec.cluster.devices[rank].name for rank in shares.group],
        None,
        UNITS,
        shares.amounts,
    )
    if spec.strategy == "voltage":
        units, (rows, decodes) = ("rows",), amounts
        amounts, decoder = (rows,), dict(zip(decodes, names, strict=True)).get(1)
    devices = [
        {"device": name, **dict(zip(units, mine, strict=False))}
        for name, mine in zip(names, zip(*amounts, strict=True), strict=True)
    ]
    by_hand = PlanByHand.model_validate({"devices": devices, "decoder": decoder}).model_dump()
    try:
        return predict(with_params(spec, planner="best", plan=by_hand)).latency_s
    except EdgeLoomError:
        return float("inf")


@pytest.mark.parametrize(
    ("name", "neighbours"),
    [
        ("megatron", other_shares),
        ("galaxy", other_shares),
        ("voltage", other_shares),
        ("deepspeed", other_groups),
    ],
)
def test_no_best_plan_is_beaten_by_one_that_is_one_move_away(name, neighbours):
    compared, index = 0, METHODS.index(name)
    while compared < CASES:
        spec, index = with_params(draw(index)[0], planner="best"), index + len(METHODS)
        if not 1 < len(spec.cluster.workers) < 4:
            continue
        try:
            best = shares_of(prepare(spec).plan.layout)
        except EdgeLoomError:
            continue
        if len(best.group) == 1:
            continue
        limit_s = BEATEN * latency_s(spec, best)
        beaten_by = [other for other in neighbours(spec, best) if latency_s(spec, other) < limit_s]
        assert not beaten_by, f"{spec.name}: {best} is beaten by {beaten_by}"
        compared += 1
