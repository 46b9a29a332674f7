"""The published figures of the five papers, as data: one number, text or range each, with where it stands.

`published/` has one JSON file per paper. A figure's `conditions` are those under which the paper gives it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from engine.domain.values import Value

FOLDER = Path(__file__).parent / "published"
PAPERS = ("voltage", "edgeformer", "lime", "adaptlink", "mcu")
"""Names of the papers, in the order of pages and documents; each is a file in `published/`."""


class PublishedFigure(Value):
    """One published figure. `where` is the table, figure or section; `unit` is as the paper prints it.

    A `value` of two numbers is a range; None stands for an empty cell of a table.
    """

    id: str
    where: str
    metric: str
    unit: str
    value: bool | float | tuple[float, float] | str | None
    conditions: dict[str, Any] = Field(default_factory=dict)


def published_text(figure: PublishedFigure) -> str:
    """The value of a figure as the paper prints it, without the unit."""
    value = figure.value
    if isinstance(value, bool) or value is None:
        return "yes" if value else "no"
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join(end if isinstance(end, str) else f"{end:g}" for end in ends)


class Paper(Value):
    """A paper and all of its figures; `strategy` is the method of this project that it describes."""

    paper: str
    title: str
    source: str
    strategy: str
    figures: tuple[PublishedFigure, ...]

    @model_validator(mode="after")
    def _differ(self) -> Paper:
        ids = [figure.id for figure in self.figures]
        for one in ids:
            if ids.count(one) > 1:
                raise ValueError(f"the figure {one} is there twice: ids must differ")
        return self


@lru_cache(maxsize=16)
def paper(name: str) -> Paper:
    """The paper of that name, one of `PAPERS`."""
    return Paper.model_validate_json((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def papers() -> tuple[Paper, ...]:
    return tuple(paper(name) for name in PAPERS)


@cache
def figures() -> dict[str, PublishedFigure]:
    """Every figure of every paper, by id."""
    return {figure.id: figure for one in papers() for figure in one.figures}
