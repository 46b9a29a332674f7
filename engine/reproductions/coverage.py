"""What becomes of every published figure: it is in an experiment, put in, checked by a test, repeats others,
or is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.domain.values import Value
from engine.reproductions.figures import PublishedFigure, figures
from engine.reproductions.states import State, by_distance

FILE = Path(__file__).with_name("coverage.toml")


class Rule(Value):
    """Figures that no experiment file has: those whose id matches one of the patterns in `figures`.

    put in: this project took them over. checked: a test compares them with ours; `ours` is what it found
    where that is another number. repeats: they state by arithmetic what other figures state, and have no
    state of their own. left out: they cannot be compared, `reason` says why.
    """

    kind: Literal["put in", "checked", "repeats", "left out"]
    figures: tuple[str, ...] = Field(min_length=1)
    ours: float | None = None
    reason: str = Field(min_length=10)

    def state_of(self, figure: PublishedFigure) -> State | None:
        """*confirmed* only where a test found the published value itself, or ours is within 10 % of it; None
        for one that repeats others.
        """
        match self.kind:
            case "repeats":
                return None
            case "put in":
                return "input"
            case "left out":
                return "cannot be checked"
        if self.ours is None:
            return "confirmed"
        return by_distance(abs(self.ours / float(str(figure.value)) - 1))

    def holds_for(self, figure_id: str) -> bool:
        return any(fnmatchcase(figure_id, pattern) for pattern in self.figures)


@cache
def rules() -> tuple[Rule, ...]:
    """The rules of `coverage.toml`; raises `SpecError` if the file is wrong."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["rule"]
    return tuple(Rule.parse(row, f"{FILE.name}, rule[{index}]") for index, row in enumerate(rows))


def rule_of(figure_id: str) -> Rule | None:
    """The first rule for a figure; None where an experiment file must have it."""
    return next((rule for rule in rules() if rule.holds_for(figure_id)), None)


def figures_of(rule: Rule) -> tuple[str, ...]:
    """Ids of the figures for which `rule` holds, in the order of the papers."""
    return tuple(one for one in figures() if rule.holds_for(one))


def left_for_experiments() -> tuple[str, ...]:
    """Ids of the figures that experiment files must have, in the order of the papers."""
    return tuple(one for one in figures() if rule_of(one) is None)


def problems(in_experiments: Iterable[str]) -> tuple[str, ...]:
    """One sentence for each figure that is nowhere, or in more than one place.

    `in_experiments` are the ids of the published values of all experiment files.
    """
    placed = list(in_experiments)
    found = [f"{one}: no paper has such a figure" for one in sorted({*placed} - {*figures()})]
    for one in figures():
        places = placed.count(one) + sum(rule.holds_for(one) for rule in rules())
        if places != 1:
            found.append(f"{one}: is in {places} places, and must be in one")
    return tuple(found)
