"""Compares a run's tokens and logits with `transformers` on one device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.model import computed_bits
from engine.domain.report import Correctness, RoundedWeights
from engine.domain.sampling import Sampling
from engine.domain.spec import RunSpec
from engine.models.inputs.prompts import requests_of, text_ids, tokenised_text
from engine.models.reference.choices import chosen, samplings_of
from engine.models.reference.process import Said
from engine.models.reference.teacher_forcing import SHAKEN, Forced, Numbers, Tokens, reference_after
from engine.models.reference.transformers_outputs import Reference
from engine.reports.outputs import read_outputs, what_differs_in_shape, what_lacks
from engine.reports.rounding import WORST_LIMIT, Rounding, measure_rounding

if TYPE_CHECKING:
    import torch

TOKENS_DIFFER = "the tokens differ from the reference's"
ONLY_TOKENS = "only tokens can be compared: no logits reach the source"
REL_LIMIT = 1e-4
"""The limit for float32: the largest difference over the reference's largest number. Beyond it the library's
own rounding error says whether the model is so sensitive (a norm over three numbers, say)."""


def compare_with_reference(
    spec: RunSpec,
    outputs: Path,
    lossy: bool = False,
    kept: Sequence[int] | None = None,
    said: Said = lambda words: None,
) -> Correctness:
    """Compare a run's outputs with the reference. `outputs` is what the source saved: `logits.<i>`,
    `tokens.<i>` or `hidden.<i>` for every request i.

    A `lossy` run is measured but not judged (see `Correctness`). `kept`: the numbers that the requests of
    `spec` had in the run, where they are not 0, 1, 2, … `said` is told how far it is.
    """
    got, why = read_outputs(outputs)
    if kept is not None:
        got = renumbered(got, kept)
    got = with_whole_logits(got, spec.model.vocab_size, samplings_of(spec))
    if why := why or what_lacks(spec, got):
        return Correctness(checked=True, ok=False, lossy=lossy, why=why)
    reference = reference_after(spec, emitted_in(spec, got), said=said)

    def forced(tokens: Tokens, numbers: Numbers) -> Sequence[torch.Tensor]:
        """`tokens` are those of the run, of which `reference` is."""
        wanted = reference if numbers == "own" else reference_after(spec, tokens, numbers, said)
        return wanted.logits or wanted.hidden

    def own(of: RunSpec, tokens: Tokens) -> Sequence[torch.Tensor]:
        wanted = reference_after(of, tokens, said=said)
        return wanted.logits or wanted.hidden

    found = judge(spec, reference, got, lossy, forced)
    found = found.model_copy(update={"rounded_weights": rounded_weights(spec, got, own)})
    return with_prompt(found, spec, reference.text_ids)


def emitted_in(spec: RunSpec, got: dict[str, torch.Tensor]) -> Tokens:
    """The tokens that a run has emitted for each request, by its outputs; none where it generates none."""
    return _emitted(spec, got, len(requests_of(spec)))


def _emitted(spec: RunSpec, got: dict[str, torch.Tensor], count: int) -> Tokens:
    """Of the first `count` requests. Of logits without tokens those are the most likely ones."""
    if not spec.workload.new_tokens:
        return [[] for _ in range(count)]
    return [
        got[f"tokens.{index}"].tolist()
        if f"tokens.{index}" in got
        else got[f"logits.{index}"].argmax(dim=-1).tolist()
        for index in range(count)
    ]


def rounded_weights(
    spec: RunSpec,
    got: dict[str, torch.Tensor],
    outputs_of: Callable[[RunSpec, Tokens], Sequence[torch.Tensor]],
) -> RoundedWeights | None:
    """How far a run with rounded weights is from the model as it is; None where they are not rounded, or are
    no numbers. `outputs_of` computes with `transformers` what follows the run's own tokens.
    """
    bits = computed_bits(spec.model)
    got = with_whole_logits(got, spec.model.vocab_size, samplings_of(spec))
    if bits is None or not all(bool(ours.isfinite().all()) for ours in got.values()):
        return None
    unrounded = spec.model.model_copy(update={"weight_bits": 0.0, "activation_bits": 0})
    plain = spec.model_copy(update={"model": unrounded})
    emitted = emitted_in(spec, got)
    theirs = outputs_of(plain, emitted)
    others = [
        chosen(rows, sampling) if ids else []
        for rows, ids, sampling in zip(theirs, emitted, samplings_of(spec), strict=True)
    ]
    kind = "logits" if spec.workload.new_tokens else "hidden"
    named = {f"{kind}.{index}": rows for index, rows in enumerate(theirs)}
    known = [(got[name], rows) for name, rows in named.items() if name in got]
    return RoundedWeights(
        bits=bits,
        activation_bits=spec.model.activation_bits,
        tokens=sum(map(len, emitted)),
        differing_tokens=sum(
            a != b for pair in zip(emitted, others, strict=True) for a, b in zip(*pair, strict=True)
        ),
        max_abs_error=_errors(known)[0] if known else None,
    )


def with_prompt(found: Correctness, spec: RunSpec, library: tuple[int, ...] | None) -> Correctness:
    """`found`, and whether the text's ids are the `library`'s own; a run with others is not right."""
    text = tokenised_text(spec)
    if text is None or library is None:
        return found
    ours = text_ids(spec, text)
    if ours == library:
        return found.model_copy(update={"prompt_identical": True})
    at = next((at for at, pair in enumerate(zip(ours, library, strict=False)) if len(set(pair)) > 1), None)
    where = min(len(ours), len(library)) if at is None else at
    why = (
        f"the prompt has other ids than AutoTokenizer of transformers gives it, from token {where} on: "
        f"{list(ours[where : where + 3])} instead of {list(library[where : where + 3])}"
    )
    return found.model_copy(
        update={"ok": False, "prompt_identical": False, "why": "; ".join(filter(None, (why, found.why)))}
    )


def renumbered(got: dict[str, torch.Tensor], kept: Sequence[int]) -> dict[str, torch.Tensor]:
    """The outputs of the requests `kept`, under their places in that list."""
    places = {str(request): str(place) for place, request in enumerate(kept)}
    found = {}
    for name, tensor in got.items():
        kind, request, *rest = name.split(".")
        if request in places:
            found[".".join((kind, places[request], *rest))] = tensor
    return found


def judge(
    spec: RunSpec, reference: Reference, got: dict[str, torch.Tensor], lossy: bool, forced: Forced
) -> Correctness:
    """Judge a run by its outputs. `forced` computes with `transformers` what follows the run's own tokens; it
    is asked where tokens or numbers differ, and always for bfloat16, whose rounding it measures.
    """
    got = with_whole_logits(got, spec.model.vocab_size, samplings_of(spec))
    if not all(bool(ours.isfinite().all()) for ours in got.values() if ours.is_floating_point()):
        return Correctness(checked=True, ok=False, lossy=lossy, why="some numbers are not finite")
    if any(name.startswith("tokens.") and name.replace("tokens", "logits") not in got for name in got):
        return _tokens_alone(spec, reference, got, forced)
    if why := what_differs_in_shape(got, reference.tensors()):
        return Correctness(checked=True, ok=False, lossy=lossy, why=why)
    if lossy:
        return _measured(spec, reference, got, forced)
    identical = _tokens_identical(spec, reference, got) if spec.workload.new_tokens else None
    named = reference.tensors()
    max_abs, max_rel = _errors([(got[name], named[name]) for name in sorted(named)])
    if spec.model.dtype == "bfloat16" or identical is False or max_rel > REL_LIMIT:
        return _rounded(spec, reference, got, identical, forced)
    return Correctness(
        checked=True, ok=True, token_identical=identical, max_abs_error=max_abs, max_rel_error=max_rel
    )


def with_whole_logits(
    got: dict[str, torch.Tensor], vocab_size: int, samplings: Sequence[Sampling | None]
) -> dict[str, torch.Tensor]:
    """`got` without pieces: `logits.<i>` of them, where the pieces of all its tokens are there, and its
    tokens are those that these logits give. Tokens that are drawn at random stay beside them.

    `piece.<request>.<index>.<start>` has the logits of token `index` from id `start` on.
    """
    import torch

    pieces: dict[tuple[int, int], list[tuple[int, torch.Tensor]]] = defaultdict(list)
    for name in [name for name in got if name.startswith("piece.")]:
        request, index, start = map(int, name.split(".")[1:])
        pieces[request, index].append((start, got[name]))
    whole = {name: tensor for name, tensor in got.items() if not name.startswith("piece.")}
    for name in [name for name in whole if name.startswith("tokens.")] if pieces else []:
        request, tokens = int(name.split(".")[1]), whole[name]
        found = [sorted(pieces[request, index], key=itemgetter(0)) for index in range(len(tokens))]
        if not all(found):
            continue
        rows = [torch.cat([piece for _, piece in of_token]) for of_token in found]
        complete = all(len(row) == vocab_size for row in rows)
        if complete and chosen(torch.stack(rows), samplings[request]) == tokens.tolist():
            whole[f"logits.{request}"] = torch.stack(rows)
            if samplings[request] is None:
                del whole[name]
    return whole


def _rounded(
    spec: RunSpec,
    reference: Reference,
    got: dict[str, torch.Tensor],
    identical: bool | None,
    forced: Forced,
) -> Correctness:
    """A lossless run in bfloat16, or one with another token or numbers that are off: errors after the same
    tokens, judged by the rounding error that the library itself has there.
    """
    count = len(reference.tensors())
    kind = "logits" if spec.workload.new_tokens else "hidden"
    ours = [got[f"{kind}.{index}"] for index in range(count)]
    emitted = _emitted(spec, got, count)
    named = reference.tensors()
    same = [named[f"{kind}.{index}"] for index in range(count)]
    library = same if identical is not False else forced(emitted, "own")
    found = _rounding_of(spec, ours, library, emitted, forced)
    max_abs, max_rel = _errors(list(zip(ours, library, strict=True)))
    why = []
    if found.flipped_tokens and not found.flips_are_ties:
        why.append(f"{TOKENS_DIFFER}, and {_margin(found)}")
    dtype = spec.model.dtype
    if (dtype == "bfloat16" or max_rel > REL_LIMIT) and not found.is_rounding:
        off = f"the largest relative error is {max_rel:.2e}, expected at most {REL_LIMIT:.0e}, and "
        why.append(
            f"{off * (dtype == 'float32')}the error is {found.typical:.3g} times the rounding error of "
            f"{dtype} and {found.worst:.3g} times in the worst row, expected at most {found.limit:.3g} and "
            f"{WORST_LIMIT:g} times"
        )
    note = f"{_ties(found)}: {_margin(found)}" if found.flipped_tokens else ""
    return Correctness(
        checked=True,
        ok=not why,
        token_identical=identical,
        max_abs_error=max_abs,
        max_rel_error=max_rel,
        rounding_error=found.error_max,
        error_over_rounding=found.typical,
        flipped_tokens=found.flipped_tokens if spec.workload.new_tokens else None,
        why="; ".join(why) or note,
    )


def _rounding_of(
    spec: RunSpec,
    ours: Sequence[torch.Tensor],
    library: Sequence[torch.Tensor],
    emitted: Tokens,
    forced: Forced,
) -> Rounding:
    """The rounding error of outputs after these tokens, beside what the reference says in other numbers."""
    shaken = [forced(emitted, numbers) for numbers in SHAKEN if spec.model.activation_bits]
    wide = forced(emitted, "precise")
    return measure_rounding(ours, library, wide, emitted, samplings_of(spec), shaken)


def _ties(found: Rounding) -> str:
    return (
        "1 token differs at a near-tie"
        if found.flipped_tokens == 1
        else f"{found.flipped_tokens} tokens differ at near-ties"
    )


def _margin(found: Rounding) -> str:
    return (
        f"the reference's token leads by at most {max(0.0, found.margin_max):.2g} there, and rounding moves "
        f"its logits by up to {found.error_max:.2g}"
    )


def _tokens_alone(
    spec: RunSpec, reference: Reference, got: dict[str, torch.Tensor], forced: Forced
) -> Correctness:
    """Whether a run is correct of which only ids reached the source: the same ones, or others at near-ties
    alone.
    """
    emitted = _emitted(spec, got, len(reference.tokens))
    if emitted == [list(ids) for ids in reference.tokens]:
        return Correctness(checked=True, ok=True, token_identical=True, why=ONLY_TOKENS)
    library = forced(emitted, "own")
    found = _rounding_of(spec, library, library, emitted, forced)
    said = f"{TOKENS_DIFFER}, and {_margin(found)}"
    if found.flips_are_ties:
        said = f"{ONLY_TOKENS}; {_ties(found)}: {_margin(found)}"
    return Correctness(
        checked=True,
        ok=found.flips_are_ties,
        token_identical=False,
        rounding_error=found.error_max,
        flipped_tokens=found.flipped_tokens,
        why=said,
    )


def _measured(
    spec: RunSpec, reference: Reference, got: dict[str, torch.Tensor], forced: Forced
) -> Correctness:
    """How far a lossy run is from the reference after the same tokens."""
    from torch.nn.functional import kl_div

    expected, identical, kl_mean, top1 = reference.tensors(), None, None, None
    if spec.workload.new_tokens:
        identical = _tokens_identical(spec, reference, got)
        if not identical:
            emitted = _emitted(spec, got, len(reference.tokens))
            expected = {f"logits.{i}": logits for i, logits in enumerate(forced(emitted, "own"))}
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
    max_abs, max_rel = _errors([(got[name], expected[name]) for name in sorted(expected)])
    return Correctness(
        checked=True,
        lossy=True,
        token_identical=identical,
        kl_mean=kl_mean,
        top1_agreement=top1,
        max_abs_error=max_abs,
        max_rel_error=max_rel,
    )


def _errors(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[float, float]:
    """The largest difference of (run, reference), and the largest relative to a request's largest number."""
    found = [(float((a.float() - b.float()).abs().max()), float(b.float().abs().max())) for a, b in pairs]
    return max(error for error, _ in found), max(error / largest for error, largest in found)


def _tokens_identical(spec: RunSpec, reference: Reference, got: dict[str, torch.Tensor]) -> bool:
    return _emitted(spec, got, len(reference.tokens)) == [list(tokens) for tokens in reference.tokens]
