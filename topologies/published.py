"""Published rates of tokens: the rows of `published_rates.csv`, each with its source.

A row whose `board` is empty is kept as a fact and not compared: no preset is like it, its model is not in the
catalogue, or its note says why the figure is not the board's.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from engine.domain.errors import SpecError

FILE = Path(__file__).with_name("published_rates.csv")


class PublishedRate(NamedTuple):
    """Tokens per second on `nodes` boards, and the parts of a token's time as the runtime of its first board
    counts them. `weight_bits` includes scales; what is not published is None.
    """

    id: str
    board: str
    device: str
    runtime: str
    model: str
    shape: str
    format: str
    weight_bits: float
    prompt_tokens: int
    prompt_tokens_per_s: float | None
    decode_tokens_per_s: float | None
    evaluation_s: float | None
    transfer_s: float | None
    nodes: int
    source: str
    note: str

    @property
    def page(self) -> str:
        """The page that published it: rows of one page are not independent of each other."""
        return self.source.split()[0].split("#")[0]


@cache
def published_rates() -> tuple[PublishedRate, ...]:
    """All rows in the order of the file; raises `SpecError` that names a wrong one."""
    found = []
    with FILE.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                found.append(_row(row))
            except (KeyError, ValueError) as error:
                raise SpecError(f"{FILE.name}, line {number}: {error}.") from error
    return tuple(found)


def _row(row: dict[str, str]) -> PublishedRate:
    return PublishedRate(
        id=row["id"],
        board=row["board"],
        device=row["device"],
        runtime=row["runtime"],
        model=row["model"],
        shape=row["shape"],
        format=row["format"],
        weight_bits=float(row["weight_bits"] or 0),
        prompt_tokens=int(row["prompt_tokens"] or 0),
        prompt_tokens_per_s=float(row["prompt_tokens_per_s"]) if row["prompt_tokens_per_s"] else None,
        decode_tokens_per_s=float(row["decode_tokens_per_s"]) if row["decode_tokens_per_s"] else None,
        evaluation_s=float(row["evaluation_s"]) if row["evaluation_s"] else None,
        transfer_s=float(row["transfer_s"]) if row["transfer_s"] else None,
        nodes=int(row["nodes"]),
        source=row["source"],
        note=row["note"],
    )
