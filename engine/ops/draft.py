"""Operations of a run's draft model, on the device that has it beside other weights.

A draft model (`ModelSpec.draft`) is a second, smaller model with layers and KV caches of its own. What it
computes belongs to no layer of the model that the run is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.domain.model import ModelSpec, draft_of
from engine.domain.plan import Slice, of_draft
from engine.ops.operation import Cost, Op, Operation
from engine.ops.tensors import Meta


@dataclass(frozen=True, slots=True)
class OfDraft(Operation):
    """`op` of the draft model, with its weights and shapes. Its KV cache is another one than the model's of
    the same sequence: call it `<that>/draft`, which is released with it.
    """

    op: Op
    layer: ClassVar[int] = -1

    @property
    def name(self) -> str:
        return f"draft_{self.op.name}"

    @property
    def cache(self) -> str | None:
        """One name for each layer, as there is none to tell them apart."""
        return f"{self.op.cache}.{self.op.layer}" if self.op.cache else None

    def slices(self, model: ModelSpec) -> tuple[Slice, ...]:
        return tuple(map(of_draft, self.op.slices(draft_of(model))))

    def cost(self, model: ModelSpec, inputs: Sequence[Meta], cached: int) -> Cost:
        return self.op.cost(draft_of(model), inputs, cached)
