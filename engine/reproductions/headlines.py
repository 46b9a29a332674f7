"""What a paper's page begins with: what a reader must know, and its headline claims, each with the state of
the figure that is its measure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from engine.domain.values import Value
from engine.reproductions.coverage import rule_of
from engine.reproductions.figures import figures, published_text
from engine.reproductions.states import Cause, State
from engine.reproductions.verdicts import FigureVerdict

FILE = Path(__file__).with_name("headlines.toml")
MUST_KNOW = Path(__file__).with_name("must_know.toml")
FIGURE = re.compile(r"\{([^}]+)\}")
"""The id of a published figure in a sentence."""


class Claimed(Value):
    """What a paper claims first; `figure` is the published figure that measures it."""

    paper: str
    claim: str
    figure: str
    why: str


class Headline(Value):
    """A claim with ours beside it: its state is that of its figure, by the same rules. `why` of an *input*
    ends with what was put in, and how ours moves with it.
    """

    paper: str
    claim: str
    where: str
    published: str
    ours: str
    state: State
    why: str
    cause: Cause = ""


@cache
def claimed() -> tuple[Claimed, ...]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["headline"]
    return tuple(Claimed.parse(row, f"{FILE.name}, headline[{index}]") for index, row in enumerate(rows))


@cache
def _must_know() -> dict[str, list[str]]:
    return tomllib.loads(MUST_KNOW.read_text(encoding="utf-8"))


def must_know(paper: str, verdicts: Mapping[str, FigureVerdict]) -> tuple[str, ...]:
    """What a reader of `paper` must know, in sentences, with ours of the figures that they name and what is
    published; `verdicts` are those of `headline`.
    """

    def ours(match: re.Match[str]) -> str:
        found = headline(Claimed(paper=paper, claim="", figure=match[1], why=""), verdicts)
        return f"{found.ours} (published: {found.published})"

    return tuple(FIGURE.sub(ours, sentence) for sentence in _must_know()[paper])


def headline(one: Claimed, verdicts: Mapping[str, FigureVerdict]) -> Headline:
    """A headline claim with its state. `verdicts` are those of predictions, by figure; a figure that is in
    none has a rule of coverage.
    """
    about = {"paper": one.paper, "claim": one.claim}
    if one.figure in verdicts:
        found = verdicts[one.figure]
        return Headline(
            where=found.where,
            published=found.published,
            ours=found.ours,
            state=found.state,
            cause=found.cause,
            why=f"{one.why} {found.why}".strip() if found.state == "input" else one.why,
            **about,
        )
    figure, rule = figures()[one.figure], rule_of(one.figure)
    assert rule is not None, f"{one.figure} is in no experiment and under no rule"
    published = published_text(figure)
    state = rule.state_of(figure)
    assert state is not None, f"{one.figure} repeats others: a headline is about one of them"
    ours = f"{rule.ours:g}" if rule.ours is not None else published if rule.kind == "checked" else "–"
    return Headline(where=figure.where, published=published, ours=ours, state=state, why=one.why, **about)
