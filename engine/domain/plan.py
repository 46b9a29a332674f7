"""Plan: which device holds which weights, and which device computes which slice of every layer.

Frozen values that go to JSON and back. `validate_cover` checks a plan before a run uses it.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Any, ClassVar, Generic, Literal

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator
from typing_extensions import TypeVar

from engine.domain.errors import PlanError
from engine.domain.kinded import Kinded
from engine.domain.model import ModelSpec
from engine.domain.values import Count, Value

Part = Literal["embed", "vision", "attention", "ffn", "lm_head"]
"""A part of a layer, `attention` or `ffn`; or of the model's ends, whose layer is -1."""
Axis = Literal["all", "heads", "columns", "experts", "positions"]
"""What a `Slice` counts: nothing (the whole part), query heads, feed-forward columns or rows of the
vocabulary, experts, or rows of the input, for which the whole weights are needed."""
Phase = Literal["both", "prefill", "decode"]
Bits = Literal[0, 4, 8]
"""Bits per number of quantised matrices; 0: the model's own numbers."""


class Slice(Value):
    """A piece of a layer's part: half-open [start, stop) along `axis`; axis "all" is the whole part.

    embed, vision (a tower with its projector) and lm_head (with the final norm) have `layer = -1`. Heads
    are query heads; the KV heads they read come along. Columns are rows of the first FFN matrix (and
    columns of the second), of every expert where there are some, and of the head rows of the vocabulary.
    Norms, output biases, and what chooses experts come whole with every slice of their part that is not
    `bare`; columns need the choice even then. Whole parts of layers may be quantised to so many
    `bits`; 0: they have the model's own numbers.
    """

    layer: int = Field(ge=-1)
    part: Part
    axis: Axis = "all"
    start: Count = 0
    stop: Count = 0
    bare: bool = False
    bits: Bits = 0
    draft: bool = Field(default=False, description="Of the draft model.", exclude_if=lambda draft: not draft)


class HeldSlice(Value):
    """A slice whose weights `device` (rank) holds. Held slices may overlap: replicas and backups. `home`: in
    memory from the start (resident, backup of another device's slice), or on disk until it is loaded
    (offloaded).
    """

    device: Count
    slice: Slice
    home: Literal["resident", "offloaded", "backup"] = "resident"


class ComputedSlice(Value):
    """A slice that `device` (rank) computes in `phase`. Together those of a phase cover each part once."""

    device: Count
    slice: Slice
    phase: Phase = "both"


class Layout(Kinded):
    """What a strategy's own program and view need of its plan, beside the holdings and the work.

    The front end chooses the view that draws a plan by the layout's kind. Fields whose names end with `rank`
    or `device` are shown with the device's name, those that end with `_s` or `_bytes` with their unit.
    `family` is what messages call such a value.
    """

    family: ClassVar[str] = "layout"


LayoutT = TypeVar("LayoutT", bound=Layout, covariant=True, default=Layout)
OwnLayoutT = TypeVar("OwnLayoutT", bound=Layout)


class Placement(Value):
    """The slices that each device holds and those that it computes: a plan without the strategy's
    own layout.
    """

    strategy: str
    holdings: tuple[HeldSlice, ...]
    work: tuple[ComputedSlice, ...]

    def held_by(self, device: int) -> tuple[Slice, ...]:
        """Slices in `device`'s memory from the start: its own, and backups of other devices' slices."""
        return tuple(h.slice for h in self.holdings if h.device == device and h.home != "offloaded")

    def with_layout(self, layout: OwnLayoutT) -> Plan[OwnLayoutT]:
        """The first plan of a run with these holdings and this work."""
        return Plan(strategy=self.strategy, holdings=self.holdings, work=self.work, layout=layout)


class Plan(Placement, Generic[LayoutT]):
    """A strategy's decision, with the `layout` that its own program reads. `version` counts the plans of one
    run: 0 is the first, 1 the first replan.
    """

    version: Count = 0
    layout: SerializeAsAny[LayoutT]

    @field_validator("layout", mode="before")
    @classmethod
    def _layout_of_kind(cls, value: Any, info: ValidationInfo) -> Any:
        return Layout.of_kind(value, info)

    def validate_cover(self, model: ModelSpec, num_positions: int, generates: bool) -> None:
        """Check that each part of each layer is computed once per phase, by a device that has its weights,
        for `num_positions` rows of the prompt.

        Raises `PlanError` with the first violation.
        """
        phases: tuple[Phase, ...] = ("prefill", "decode") if generates else ("prefill",)
        whole = {
            "heads": model.num_heads,
            "columns": model.intermediate_size,
            "experts": model.num_experts,
            "positions": num_positions,
        }
        parts: list[tuple[int, Part]] = [(-1, "embed")]
        parts += [(layer, part) for layer in range(model.num_layers) for part in ("attention", "ffn")]
        if model.has_head:
            parts.append((-1, "lm_head"))
        held = defaultdict(list)
        for holding in self.holdings:
            held[holding.device, holding.slice.layer, holding.slice.part].append(holding.slice)
        for phase in phases:
            table = defaultdict(list)
            for work in self.work:
                if work.phase in ("both", phase):
                    table[work.slice.layer, work.slice.part].append(work)
            tower: list[tuple[int, Part]] = [(-1, "vision")] if phase == "prefill" and model.has_tower else []
            for layer, part in (*tower, *parts):
                sizes = whole | {"columns": model.vocab_size} if part == "lm_head" else whole
                _check_cover(table.get((layer, part), []), sizes, f"{phase}, layer {layer} {part}")
                for work in table[layer, part]:
                    if not any(contains(s, work.slice) for s in held[work.device, layer, part]):
                        raise PlanError(
                            f"{self.strategy}: {phase}, layer {layer} {part}: device {work.device} computes "
                            f"{work.slice.axis} {work.slice.start}:{work.slice.stop} without its weights."
                        )


def _check_cover(works: list[ComputedSlice], whole: dict[str, int], where: str) -> None:
    if not works:
        raise PlanError(f"{where}: no device computes it.")
    axes = {work.slice.axis for work in works}
    if axes == {"all"}:
        if len(works) > 1:
            raise PlanError(f"{where}: computed {len(works)} times, expected once.")
        return
    if len(axes) > 1:
        raise PlanError(f"{where}: mixes the axes {', '.join(sorted(axes))}.")
    at = 0
    (axis,) = axes
    for piece in sorted((work.slice for work in works), key=lambda s: (s.start, s.stop)):
        if piece.start != at:
            kind = "no device computes" if piece.start > at else "computed twice:"
            raise PlanError(f"{where}: {kind} {axis} {min(at, piece.start)}:{max(at, piece.start)}.")
        at = piece.stop
    if at != whole[axis]:
        raise PlanError(f"{where}: covers {axis} up to {at}, expected {whole[axis]}.")


@lru_cache(maxsize=16384)
def of_draft(piece: Slice) -> Slice:
    """The same slice of the draft model."""
    return piece.model_copy(update={"draft": True})


@lru_cache(maxsize=16384)
def of_model(piece: Slice) -> Slice:
    """A slice of the draft model as one of a model of its own."""
    return piece.model_copy(update={"draft": False})


def covers(have: Slice, need: Slice) -> bool:
    """Whether the weights `have` include those of `need`, of the same part."""
    return (have.layer, have.part) == (need.layer, need.part) and contains(have, need)


def contains(have: Slice, need: Slice) -> bool:
    """Whether weights `have` suffice for work `need`: positions need the whole part.

    An empty range needs only what every slice of the part includes: its norm and output bias. Weights of one
    number of bits do not suffice for another.
    """
    if have.bits != need.bits or have.draft != need.draft or (have.bare and not need.bare):
        return False
    if have.axis == "all" or (need.axis in ("heads", "columns", "experts") and need.start == need.stop):
        return True
    return have.axis == need.axis and have.start <= need.start and need.stop <= have.stop
