"""What each change of the cluster did to the time of a token. Pure.

A token counts with the time since the one before it; the first of a request, which includes its prompt,
does not. `before_s` and `after_s` are medians of at most `TOKENS` tokens on either side of a change, not
beyond the changes beside it. A token in whose time the change came counts as after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from engine.domain.finding import ChangeEffect
from engine.domain.links import named_words
from engine.domain.report import RequestReport
from engine.domain.scenario import (
    Change,
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    LinkUp,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
    SlowDevice,
)
from engine.domain.units import human, human_s

TOKENS = 12


def effects_of(changes: Sequence[Change], requests: Sequence[RequestReport]) -> tuple[ChangeEffect, ...]:
    """One per change, in the order of their times."""
    tokens = sorted(
        (request.arrival_s + after_s, after_s - before_s)
        for request in requests
        for before_s, after_s in pairwise(request.token_s)
    )
    times_s = [time_s for time_s, _ in tokens]
    took_s = [each_s for _, each_s in tokens]
    ordered = sorted(changes, key=lambda change: change.at_s)
    cuts = [bisect_right(times_s, change.at_s) for change in ordered]
    effects = []
    for change, cut in zip(ordered, cuts, strict=True):
        first = max((0, cut - TOKENS, *(other for other in cuts if other < cut)))
        last = min((len(tokens), cut + TOKENS, *(other for other in cuts if other > cut)))
        before, after = took_s[first:cut], took_s[cut:last]
        known = bool(before and after)
        effects.append(
            ChangeEffect(
                at_s=change.at_s,
                what=in_words(change),
                before_s=median(before) if known else None,
                after_s=median(after) if known else None,
                worst_s=max(after) if known else None,
            )
        )
    return tuple(effects)


def in_words(change: Change) -> str:
    """A noun phrase: "the rate of 20 Mbit/s on a–b"."""
    match change:
        case SetRate(link=link, direction=way):
            return f"the rate of {human(change.bit_per_s, 'bit/s')} on {named_words(link, way)}"
        case SetDelay(link=link, direction=way):
            return f"the delay of {human_s(change.delay_s)} on {named_words(link, way)}"
        case SetLoss(link=link, direction=way):
            return f"the loss of {change.loss_frac * 100:.3g} % on {named_words(link, way)}"
        case SetJitter(link=link):
            return f"the jitter of {human_s(change.jitter_s)} on {named_words(link)}"
        case LinkDown():
            return f"the cut of {named_words(change.link)}"
        case LinkUp():
            return f"the restoring of {named_words(change.link)}"
        case SlowDevice():
            slower = change.factor >= 1
            times = f"{change.factor if slower else 1 / change.factor:.3g}"
            return f"the {'slowdown' if slower else 'speed-up'} of {change.device} by a factor of {times}"
        case DropDevice():
            return f"the loss of {change.device}"
        case FreezeDevice():
            return f"the freezing of {change.device}"
        case JoinDevice():
            return f"the joining of {change.device}"
