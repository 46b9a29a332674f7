"""The times of tokens that nothing disturbed, in a run that was changed: those before the first change or
failure, and those after the last one was mended. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from engine.domain.report import RunReport

FEW = 3
"""Later tokens that it takes to judge their mean."""

Window = tuple[float, float]


class Calm(NamedTuple):
    """Some tokens of a run: how long they took together, and by the prediction."""

    what: str
    took_s: float
    expected_s: float


def calm_tokens(report: RunReport, predicted: RunReport, after: bool) -> Iterator[Calm]:
    """What can be judged of a run with changes beside its prediction, which knows them. `after`: also what
    came after the last of them.
    """
    begins_s = [one.at_s for one in (*report.scenario.changes, *report.recoveries)]
    if not begins_s:
        return
    before = (-math.inf, min(begins_s))
    firsts = [pair[0] for pair in _common(report, predicted, before, before) if pair[0][0] == 0]
    if firsts:
        yield Calm("the first token", sum(took for _, took, _ in firsts), sum(own for *_, own in firsts))
    windows = [("before the first change", before, before)]
    if after:
        until = math.inf
        windows.append(("after the last change", (_over_s(report), until), (_over_s(predicted), until)))
    for when, own, expected in windows:
        gaps = [
            (late[1] - early[1], late[2] - early[2])
            for tokens in _common(report, predicted, own, expected)
            for early, late in pairwise(tokens)
        ]
        if len(gaps) >= FEW:
            yield Calm(
                f"every later token {when}", sum(took for took, _ in gaps), sum(own for _, own in gaps)
            )


def _common(
    report: RunReport, predicted: RunReport, own: Window, expected: Window
) -> Iterator[list[tuple[int, float, float]]]:
    """Of each request the tokens that came within these windows in both: index, time, predicted time."""
    by_index = {request.index: request for request in predicted.requests}
    for request in report.requests:
        other = by_index.get(request.index)
        if other is None:
            continue
        both = enumerate(zip(request.token_s, other.token_s, strict=False))
        tokens = [
            (index, took_s, expected_s)
            for index, (took_s, expected_s) in both
            if own[0] < request.arrival_s + took_s < own[1]
            and expected[0] < other.arrival_s + expected_s < expected[1]
        ]
        if tokens:
            yield tokens


def _over_s(report: RunReport) -> float:
    """When the last change was made and the last recovery was over."""
    ends_s = [change.at_s for change in report.scenario.changes]
    for one in report.recoveries:
        mended_s = one.detect_s + one.replan_s + one.reload_s + (one.rebuild_s or 0.0)
        ends_s.append(one.at_s + mended_s)
    return max(ends_s, default=0.0)
