"""Rows of several sequences in one tensor, each with a KV cache of its own: [1, ΣT, D].

Products, norms and activations take all rows at once, attention goes from sequence to sequence (Yu et al.,
"Orca", OSDI 2022, section 3.2: selective batching). An operation on such rows names a `Ragged` in place of
one KV cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Piece(NamedTuple):
    """`rows` new rows of one sequence, which follow the `start` rows in its KV cache."""

    cache: str
    start: int
    rows: int


@dataclass(frozen=True, slots=True)
class Ragged:
    """The sequences whose rows a tensor has, in this order."""

    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """ΣT, the rows of the tensor."""
        return sum(piece.rows for piece in self.pieces)


CacheName = str | Ragged
"""The KV cache of an operation, or those of all sequences whose rows it computes."""
