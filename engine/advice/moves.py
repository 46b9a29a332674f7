"""Plans that differ from a plan by one unit on another device. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.domain.by_hand import DeviceShare, PlanByHand, Unit
from engine.domain.model import ModelSpec

PARTS_OF_ROWS = 16
"""Rows and columns that go alone are moved by this part of all."""


class Step(NamedTuple):
    """What is moved at a time, by unit, and how a sentence calls it."""

    amounts: dict[Unit, float]
    words: str


def step_of(model: ModelSpec, units: Sequence[Unit], steps: dict[Unit, int]) -> Step:
    """The smallest move that means something: a layer, a head with its part of the columns, or a sixteenth of
    the columns or the rows.
    """
    if "layers" in units:
        layers = steps.get("layers", 1)
        return Step({"layers": layers}, "one layer" if layers == 1 else "all layers")
    if "heads" in units:
        heads = steps.get("heads", 1)
        columns = max(1, round(model.intermediate_size * heads / model.num_heads))
        words = "one head" if heads == 1 else f"{heads} heads"
        return Step({"heads": heads, "columns": columns}, f"{words} with {columns} columns")
    if "columns" in units:
        unit = steps.get("columns", 1)
        columns = unit * max(1, round(model.intermediate_size / unit / PARTS_OF_ROWS))
        return Step({"columns": columns}, f"{columns} columns")
    return Step({"rows": 1 / PARTS_OF_ROWS}, f"1/{PARTS_OF_ROWS} of the rows")


def moved(plan: PlanByHand, step: Step, giver: str, taker: str, source: str) -> PlanByHand | None:
    """`plan` with one step of `giver` for `taker`; None if the giver has not so much, nor anything.

    A taker without a share comes behind the giver, the source before all. Streams, segments and copies are
    chosen anew.
    """
    shares = {share.device: share for share in plan.devices}
    if giver not in shares:
        return None
    total = sum(share.rows for share in plan.devices)
    gives = {
        unit: min(amount * total if unit == "rows" else amount, shares[giver].amount(unit))
        for unit, amount in step.amounts.items()
    }
    if not any(gives.values()):
        return None
    names = [share.device for share in plan.devices]
    if taker not in shares:
        shares[taker] = DeviceShare(device=taker)
        names.insert(0 if taker == source else names.index(giver) + 1, taker)
    for name, sign in ((giver, -1), (taker, 1)):
        share = shares[name]
        amounts = {unit: share.amount(unit) + sign * amount for unit, amount in gives.items()}
        shares[name] = share.model_copy(update={**_whole(amounts), "streams": None})
    left = [shares[name] for name in names if name != giver or _has_any(shares[name])]
    return plan.model_copy(update={"devices": tuple(left), "backups": None, "segments": None})


def _whole(amounts: dict[Unit, float]) -> dict[str, float]:
    return {unit: amount if unit == "rows" else int(amount) for unit, amount in amounts.items()}


def _has_any(share: DeviceShare) -> bool:
    return bool(share.layers or share.heads or share.columns or share.rows or share.lent_heads)
