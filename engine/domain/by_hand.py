"""A plan made by hand: how much of a model each device gets, as a person writes it down.

One value for all strategies. A strategy says which units it divides (`DivisibleParams.units`) and which of
the further fields it reads (`settings`); `engine/strategies/shared/by_hand.py` checks the amounts.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from engine.domain.values import Count, Name, NonNegative, Value

Unit = Literal["layers", "heads", "columns", "experts", "rows", "lent_heads"]
"""What a plan made by hand divides; `DeviceShare` says what each means."""
StreamedPart = Literal["layer", "attention", "ffn", "nothing"]
"""What of a layer is read from disk each time it is needed."""
EARLIER_KINDS = ("stages", "shares", "positions")
"""Kinds of the three forms that a plan by hand had before; their shares have the same keys."""


class DeviceShare(Value):
    """What `device` gets; a strategy divides some of these units and refuses the others.

    `layers`: consecutive layers, in the order of the devices. `heads`, `columns` and `experts`: query heads,
    feed-forward columns and experts of every (split) layer. `rows`: a weight in the division of the
    positions.
    `lent_heads`: the most heads that it attends at a time in a block of another owner (EdgeFormer), and
    `helpers` names the devices that attend heads for this one (None: the strategy chooses). `streams`:
    what each slot of its stages reads from disk (LIME; None: as little as its memory asks for).
    """

    device: Name
    layers: Count = 0
    heads: Count = 0
    columns: Count = 0
    experts: Count = 0
    rows: NonNegative = 0
    lent_heads: Count = 0
    helpers: tuple[Name, ...] | None = None
    streams: tuple[StreamedPart, ...] | None = None

    def amount(self, unit: Unit) -> float:
        """How much of `unit` the device gets."""
        value: float = getattr(self, unit)
        return value


class BackupShare(Value):
    """A backup: `device` has a copy of the next `columns` columns of `of` (AdaptLink)."""

    of: Name
    device: Name
    columns: Count


class PlanByHand(Value):
    """The shares of all devices that take part, in the order in which they compute.

    `segments`: rounds of LIME's ring per token, `prefill_chunk`: tokens of the prompt that pass at a time
    (0: all). `decoder`: the device that generates (Voltage). `embedding` and `head`: the devices with the
    ends of the model (Accelerate). `split_layers`: how many layers, from the last one back, are divided by
    columns, and `backups`: who has copies (AdaptLink).
    None: the strategy chooses.
    """

    devices: tuple[DeviceShare, ...] = Field(min_length=1)
    segments: Count | None = None
    prefill_chunk: Count | None = None
    decoder: Name | None = None
    embedding: Name | None = None
    head: Name | None = None
    split_layers: Count | None = None
    backups: tuple[BackupShare, ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_form(cls, data: Any) -> Any:
        """Read `{"kind": "stages", "stages": [...]}` and its like, which stored runs may have."""
        if isinstance(data, dict) and data.get("kind") in EARLIER_KINDS:
            rest = {key: value for key, value in data.items() if key not in ("kind", data["kind"])}
            return {"devices": data.get(data["kind"]), **rest}
        return data

    @field_validator("devices")
    @classmethod
    def _named_once(cls, shares: tuple[DeviceShare, ...]) -> tuple[DeviceShare, ...]:
        names = [share.device for share in shares]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is named twice: give each device one share")
        return shares

    def to_json(self) -> dict[str, Any]:
        """The plan as a person reads and edits it, without what it leaves open."""
        return self.model_dump(mode="json", exclude_defaults=True)


class UnitSize(Value):
    """A unit that a plan divides: how many there are in the `whole` (None: as many as one likes), in steps of
    `step`.
    """

    name: Unit
    whole: Count | None
    step: Count


class EditablePlan(Value):
    """A run's plan as a person may edit it: rows are those of the prompt. `units` says what is divided."""

    plan: PlanByHand
    units: tuple[UnitSize, ...]
