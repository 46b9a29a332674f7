"""The importance of a block's heads, as far as it is known."""

from __future__ import annotations

from typing import NamedTuple


class Scores(NamedTuple):
    """The importance of a block's heads, and how it was found.

    `raw` has the importance of every head, None where no head had to be compared.

    `hits` heads were within τ of one in the mapping table, `misses` were not. Of the misses `measured` were
    measured exactly; the others have the importance of the nearest head in the table.
    """

    raw: tuple[float, ...] | None
    hits: int = 0
    misses: int = 0
    measured: int = 0


UNKNOWN = Scores(None)
