"""Every run proves itself: its tokens and logits against `transformers` on one device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.models.reference import Reference, load_or_compute
from engine.report import Correctness
from engine.spec import RunSpec

if TYPE_CHECKING:
    import torch

REL_LIMIT = {"float32": 1e-4, "bfloat16": 2e-2}


def compare_with_reference(spec: RunSpec, outputs: Path) -> Correctness:
    """`outputs` is what the source saved: `logits.<i>` or `hidden.<i>` for every request i."""
    from safetensors.torch import load_file

    reference = load_or_compute(spec)
    got = load_file(outputs)
    pairs = [(got[name], expected) for name, expected in sorted(reference.tensors().items())]
    max_abs = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
    max_rel = max(_relative(ours, theirs) for ours, theirs in pairs)
    identical = _tokens_identical(reference, got) if spec.workload.new_tokens else None
    limit = REL_LIMIT[spec.model.dtype]
    why = []
    if identical is False:
        why.append("the tokens differ from the reference's")
    if max_rel > limit:
        why.append(f"the largest relative error is {max_rel:.2e}, expected at most {limit:.0e}")
    return Correctness(
        checked=True, ok=not why, token_identical=identical, max_abs_error=max_abs, max_rel_error=max_rel,
        why="; ".join(why),
    )


def _relative(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest difference over the largest magnitude of the reference."""
    return float((ours.float() - theirs.float()).abs().max() / theirs.float().abs().max())


def _tokens_identical(reference: Reference, got: dict[str, torch.Tensor]) -> bool:
    return all(
        got[f"logits.{request}"].argmax(dim=-1).tolist() == list(tokens)
        for request, tokens in enumerate(reference.tokens)
    )
