"""Draws tokens at random so that whoever draws the same token gets the same one. Pure.

The largest of l + T·g over the token ids, with l their logits, T the temperature and g independent standard
Gumbel numbers, has the distribution softmax(l / T) (Maddison, Tarlow and Minka, "A* sampling", NIPS 2014,
section 2). Here g follows from the seed, the request, the number of the token and the token id alone, by the
counter-based generator Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). So
neither the batch, nor which device has which part of the vocabulary, nor a failure changes what is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.domain.sampling import Sampling, TokenDraw

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]

BLOCK = 4
"""Numbers that Philox makes for one value of its counter."""


def gumbel(sampling: Sampling, index: int, ids: Ids) -> Numbers:
    """Standard Gumbel numbers of these ascending token ids for token number `index` of an answer."""
    first = int(ids[0]) // BLOCK
    key = np.array([sampling.seed, sampling.stream], dtype=np.uint64)
    counter = np.array([first, 0, index, 0], dtype=np.uint64)
    begin = BLOCK * first
    bits = np.random.Philox(key=key, counter=counter).random_raw(int(ids[-1]) + 1 - begin)[ids - begin]
    # 52 bits: with 53 the largest number would round to 1, whose logarithm is 0
    uniform = ((bits >> np.uint64(12)) + 0.5) * 2.0**-52
    found: Numbers = -np.log(-np.log(uniform))
    return found


def drawn(draw: TokenDraw, logits: Numbers, ids: Ids | None = None) -> int:
    """The token id that is drawn from the logits of all token ids, or of these ascending ones. Of equal ones
    it is the lowest.
    """
    known = np.arange(len(logits)) if ids is None else ids
    if draw.sampling is None or not np.isfinite(logits).all():  # the verdict says what is not finite
        return int(known[logits.argmax()])
    places = allowed(draw.sampling, logits)
    return int(known[places][scores(draw, logits[places], known[places]).argmax()])


def scores(draw: TokenDraw, logits: Numbers, ids: Ids) -> Numbers:
    """Of these token ids the one with the largest score is drawn: l + T·g, in the unit of the logits."""
    if draw.sampling is None:
        return logits
    return logits + draw.sampling.temperature * gumbel(draw.sampling, draw.number, ids)


def candidates(draw: TokenDraw, logits: Numbers, start: int, count: int) -> Ids:
    """Places of `count` of these `logits`, of the token ids from `start` on, among which is the token that
    is drawn, if it is in this part. Where all tokens may be drawn, the score decides.
    """
    if draw.sampling is not None and not draw.sampling.top_k:
        logits = scores(draw, logits, np.arange(start, start + len(logits)))
    return largest(logits, count)


def allowed(sampling: Sampling, logits: Numbers) -> Ids:
    """Places of the logits whose tokens may be drawn, in ascending order."""
    if not sampling.filters:
        return np.arange(len(logits))
    places = largest(logits, sampling.top_k or len(logits))
    if sampling.top_p < 1:
        before, total = weight_before(sampling, logits[places])
        places = places[: max(1, int((before < sampling.top_p * total).sum()))]
    return np.sort(places)


def weight_before(sampling: Sampling, descending: Numbers) -> tuple[Numbers, float]:
    """For each of these logits the weight exp(l / T) of all before it; and the weight of all."""
    sums = np.exp((descending - descending[0]) / sampling.temperature).cumsum()
    return np.concatenate(([0.0], sums[:-1])), float(sums[-1])


def largest(numbers: Numbers, count: int) -> Ids:
    """Places of the `count` largest numbers, the largest first; of equal ones the first place first."""
    places = np.arange(len(numbers))
    if count < len(numbers):
        least = np.partition(numbers, len(numbers) - count)[len(numbers) - count]
        places = np.flatnonzero(numbers >= least)
    order = np.argsort(-numbers[places], kind="stable")
    return places[order][:count]
