"""Compares a run's tokens and logits with `transformers` on one device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.report import Correctness
from engine.domain.spec import RunSpec
from engine.models.reference.teacher_forcing import forced_logits
from engine.models.reference.transformers_outputs import Reference, load_or_compute

if TYPE_CHECKING:
    import torch

TOKENS_DIFFER = "the tokens differ from the reference's"
REL_LIMIT = {"float32": 1e-4, "bfloat16": 2e-2}


def compare_with_reference(spec: RunSpec, outputs: Path, lossy: bool = False) -> Correctness:
    """`outputs` is what the source saved: `logits.<i>`, `tokens.<i>` or `hidden.<i>` for every request i.

    A `lossy` run is measured but not judged (see `Correctness`).
    """
    from safetensors.torch import load_file

    reference = load_or_compute(spec)
    got = load_file(outputs)
    if any(name.startswith("tokens.") for name in got):
        same = all(got[f"tokens.{i}"].tolist() == list(ids) for i, ids in enumerate(reference.tokens))
        said = "only tokens can be compared: no logits reach the source" if same else TOKENS_DIFFER
        return Correctness(checked=True, ok=same, token_identical=same, why=said)
    if lossy:
        return _measured(spec, reference, got)
    pairs = [(got[name], expected) for name, expected in sorted(reference.tensors().items())]
    max_abs = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
    max_rel = max(_relative(ours, theirs) for ours, theirs in pairs)
    identical = _tokens_identical(reference, got) if spec.workload.new_tokens else None
    limit = REL_LIMIT[spec.model.dtype]
    why = []
    if identical is False:
        why.append(TOKENS_DIFFER)
    if max_rel > limit:
        why.append(f"the largest relative error is {max_rel:.2e}, expected at most {limit:.0e}")
    return Correctness(
        checked=True,
        ok=not why,
        token_identical=identical,
        max_abs_error=max_abs,
        max_rel_error=max_rel,
        why="; ".join(why),
    )


def _measured(spec: RunSpec, reference: Reference, got: dict[str, torch.Tensor]) -> Correctness:
    """How far a lossy run is from the reference after the same tokens."""
    from torch.nn.functional import kl_div

    if not all(bool(ours.isfinite().all()) for ours in got.values()):
        return Correctness(checked=True, ok=False, lossy=True, why="some numbers are not finite")
    expected, identical, kl_mean, top1 = reference.tensors(), None, None, None
    if spec.workload.new_tokens:
        identical = _tokens_identical(reference, got)
        if not identical:
            emitted = [got[f"logits.{i}"].argmax(dim=-1).tolist() for i in range(len(reference.tokens))]
            expected = {f"logits.{i}": logits for i, logits in enumerate(forced_logits(spec, emitted))}
        names = sorted(expected)
        ours, theirs = (
            [named[name].float().log_softmax(dim=-1) for name in names] for named in (got, expected)
        )
        divergences = [
            kl_div(a, b, log_target=True, reduction="none").sum(dim=-1)
            for a, b in zip(ours, theirs, strict=True)
        ]
        agreed = [a.argmax(dim=-1) == b.argmax(dim=-1) for a, b in zip(ours, theirs, strict=True)]
        # rounding may make the divergence of equal distributions a little negative
        kl_mean = max(0.0, sum(float(d.mean()) for d in divergences) / len(divergences))
        top1 = sum(float(same.float().mean()) for same in agreed) / len(agreed)
    pairs = [(got[name], expected[name]) for name in sorted(expected)]
    return Correctness(
        checked=True,
        lossy=True,
        token_identical=identical,
        kl_mean=kl_mean,
        top1_agreement=top1,
        max_abs_error=max(float((a.float() - b.float()).abs().max()) for a, b in pairs),
        max_rel_error=max(_relative(a, b) for a, b in pairs),
    )


def _relative(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest difference over the largest magnitude of the reference."""
    return float((ours.float() - theirs.float()).abs().max() / theirs.float().abs().max())


def _tokens_identical(reference: Reference, got: dict[str, torch.Tensor]) -> bool:
    return all(
        got[f"logits.{request}"].argmax(dim=-1).tolist() == list(tokens)
        for request, tokens in enumerate(reference.tokens)
    )
