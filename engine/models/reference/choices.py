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
    enters, leaves = _limits(sampling, logits)
    rivals = known > known[token]
    beaten = np.minimum(known - known[token], leaves)[rivals]
    return float(max(enters[token], beaten.max(initial=0.0)))


def _limits(sampling: Sampling, logits: Numbers) -> tuple[Numbers, Numbers]:
    """For each token the difference of logits with which it comes among those that may be drawn, 0 if it is;
    and the one with which it leaves them, 0 if it is not.

    The sum of probabilities before a token reaches `top_p` when these logits move against the others by what
    changes its odds so far, or when two tokens change places.
    """
    most = sampling.top_k or len(logits)
    order = largest(logits, len(logits))
    ordered = logits[order]
    enters, leaves = np.zeros(len(logits)), np.full(len(logits), np.inf)
    if most < len(logits):
        enters[most:] = ordered[most - 1] - ordered[most:]
        leaves[:most] = ordered[:most] - ordered[most]
        leaves[most:] = 0.0
    if sampling.top_p < 1:
        before, total = weight_before(sampling, ordered[:most])
        within = before < sampling.top_p * total
        count = max(1, int(within.sum()))
        share = np.ones(len(logits))
        share[:most] = before / total
        with np.errstate(divide="ignore"):
            odds = np.log(share) - np.log1p(-share) - np.log(sampling.top_p / (1 - sampling.top_p))
        moves = sampling.temperature * odds
        enters[count:] = np.maximum(
            enters[count:], np.minimum(moves[count:], ordered[count - 1] - ordered[count:])
        )
        leaves[:count] = np.minimum(leaves[:count], -moves[:count])
        leaves[count:] = 0.0
        if count < len(logits):
            leaves[:count] = np.minimum(leaves[:count], ordered[:count] - ordered[count])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return enters[back], leaves[back]
