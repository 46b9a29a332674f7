"""Which tokens follow from a reference's numbers, and by how much another one is not among them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.domain.sampling import Sampling, TokenDraw
from engine.domain.spec import RunSpec
from engine.models.inputs.prompts import requests_of
from engine.ops.draws import Numbers, drawn, largest, scores, weight_before

if TYPE_CHECKING:
    import torch

MOST_RIVALS = 100
"""Tokens with larger scores that are looked at, those with the largest first."""


def samplings_of(spec: RunSpec) -> list[Sampling | None]:
    """How the tokens of each request are drawn; None: they are the most likely ones."""
    return [request.sampling for request in requests_of(spec)]


def chosen(rows: torch.Tensor, sampling: Sampling | None) -> list[int]:
    """The tokens that logits [new_tokens, V] give."""
    if sampling is None:
        ids: list[int] = rows.argmax(dim=-1).tolist()
        return ids
    return [next_token(row, sampling, index) for index, row in enumerate(rows)]


def next_token(row: torch.Tensor, sampling: Sampling | None, index: int) -> int:
    """Token number `index` of an answer, from logits [V]."""
    if sampling is None:
        return int(row.argmax())
    return drawn(TokenDraw(sampling, index), row.double().numpy())


def lead(row: torch.Tensor, sampling: Sampling | None, index: int, best: int, token: int) -> float:
    """By how much two logits must move against each other for `token` to be number `index` of the answer,
    where the reference has chosen `best`.
    """
    if sampling is None:
        return float(row[best] - row[token])
    logits = row.double().numpy()
    known = scores(TokenDraw(sampling, index), logits, np.arange(len(logits)))
    order = largest(logits, len(logits))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ahead = known - known[token]
    rivals = [rival for rival in largest(ahead, MOST_RIVALS) if ahead[rival] > 0]
    beaten = [min(float(ahead[rival]), _leaves(sampling, logits[order], rank[rival])) for rival in rivals]
    return max(_enters(sampling, logits[order], rank[token]), *beaten, 0.0)


def _enters(sampling: Sampling, ordered: Numbers, rank: int) -> float:
    """With which difference the token at this place, of logits in descending order, may be drawn; 0 if it is
    among those that may. It passes some of those before it, and the others lose probability to the rest.
    """
    most = min(sampling.top_k or len(ordered), len(ordered))
    limit = max(0.0, float(ordered[most - 1] - ordered[rank]))
    if sampling.top_p == 1:
        return limit
    before, total = weight_before(sampling, ordered[:most])
    stop = min(rank, most - 1) + 1
    moves = np.maximum(ordered[:stop] - ordered[rank], _over(sampling, before[:stop], total))
    return max(limit, float(moves.min()))


def _leaves(sampling: Sampling, ordered: Numbers, rank: int) -> float:
    """With which difference it may no longer be drawn, in the same way; 0 if it may not be anyway."""
    most = min(sampling.top_k or len(ordered), len(ordered))
    if rank >= most:
        return 0.0
    limit = float(ordered[rank] - ordered[most]) if most < len(ordered) else np.inf
    if sampling.top_p == 1:
        return limit
    before, total = weight_before(sampling, ordered[:most])
    sums = np.concatenate((before[1:], [total]))
    others = sums[rank:] - (sums[rank] - before[rank])
    moves = np.maximum(ordered[rank] - ordered[rank:most], -_over(sampling, others, total))
    return min(limit, float(moves.min()))


def _over(sampling: Sampling, weights: Numbers, total: float) -> Numbers:
    """By which difference of logits the odds of these weights are over those of `top_p`."""
    share = np.clip(weights / total, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        odds = np.log(share) - np.log1p(-share) - np.log(sampling.top_p / (1 - sampling.top_p))
    over: Numbers = sampling.temperature * odds
    return over
