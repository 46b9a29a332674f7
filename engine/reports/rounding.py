"""Tells rounding from mistakes: a run's numbers against `transformers` in the same dtype and in a wider one.

In bfloat16 any order of additions gives other last digits, so a run that is right differs from the library
and may choose another token where two are almost as likely. How large such differences are depends on model
and text. It is measured: the library computes the run's own text (teacher forcing) in the run's dtype and,
with the same weights, in numbers of twice the width. The difference of the two is the rounding error of the
dtype, and a run is right if its own difference from the wider numbers is not much larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.domain.sampling import Sampling
from engine.models.reference.choices import lead, next_token

if TYPE_CHECKING:
    import torch

TYPICAL_LIMIT = 2.0
"""How many times the library's rounding error a run's may be, as the geometric mean over many rows. In 460
drawn right runs in bfloat16 of all strategies it was at most 1.6. Without one head it is 7 to 70, without the
bias of a first attention 4 to 14."""
FEW_ROWS = 1.5
"""Widens the limit where there are few rows: a single row may have 1 + FEW_ROWS times that limit, and n rows
1 + FEW_ROWS / n times, because the mean of a few rows is uncertain: in drawn right runs of one row it was up
to 3.2.
"""
WORST_LIMIT = 10.0
"""How many times the library's worst row a run's worst row may be: a mistake in a single token is more."""


class Rounding(NamedTuple):
    """Errors are differences from the library's numbers of twice the width, after the same tokens. A row (a
    token's logits, a position's hidden state) has the root mean square of its errors.

    error_max       the library's largest error in the run's dtype: its rounding error
    typical         the run's error over the library's, geometric mean over rows
    limit           the largest `typical` of a right run of so many rows
    worst           the run's worst row over the library's worst row
    flipped_tokens  tokens that the library, in the run's dtype, would not have chosen
    margin_max      how far the wide numbers prefer the library's token where the run chose another, at most:
                    their difference, or where tokens are drawn that of what decides the draw
    """

    error_max: float
    typical: float
    limit: float
    worst: float
    flipped_tokens: int
    margin_max: float

    @property
    def is_rounding(self) -> bool:
        return self.typical <= self.limit and self.worst <= WORST_LIMIT

    @property
    def flips_are_ties(self) -> bool:
        """Whether every other choice was a near-tie: a margin is the difference of two logits, and each may
        be off by the rounding error of a run.
        """
        return self.margin_max <= 2 * TYPICAL_LIMIT * self.error_max


def measure_rounding(
    ours: Sequence[torch.Tensor],
    library: Sequence[torch.Tensor],
    wide: Sequence[torch.Tensor],
    emitted: Sequence[Sequence[int]],
    samplings: Sequence[Sampling | None],
    shaken: Sequence[Sequence[torch.Tensor]] = (),
) -> Rounding:
    """Measure rounding errors from outputs per request: of the run, of the library in its dtype, of the
    library in wider numbers.

    `emitted` are the run's tokens, none for a model that generates none; `samplings` say how those of each
    request were drawn. `shaken` are the library's, too, each where a little more or less before its products
    makes other whole numbers of 8 bits: these errors count as rounding beside its own. Which rows have such a
    number is chance, so the worst row of all counts for every row.
    """
    import torch

    smallest = torch.finfo(library[0].dtype).eps / 4
    run_rows, own_rows = _row_errors(ours, wide, smallest), _row_errors(library, wide, smallest)
    if shaken:
        worst = max(float(_row_errors(each, wide, smallest).max()) for each in shaken)
        own_rows = own_rows.clamp(min=worst)
    margins = [
        lead(exact_rows[index], sampling, index, best, token)
        for rows, exact_rows, tokens, sampling in zip(library, wide, emitted, samplings, strict=True)
        for index, token in enumerate(tokens)
        if (best := next_token(rows[index], sampling, index)) != token
    ]
    return Rounding(
        error_max=max(
            float((a.double() - b.double()).abs().max())
            for each in (library, *shaken)
            for a, b in zip(each, wide, strict=True)
        ),
        typical=float((run_rows.log() - own_rows.log()).mean().exp()),
        limit=TYPICAL_LIMIT * (1 + FEW_ROWS / len(run_rows)),
        worst=float(run_rows.max() / own_rows.max()),
        flipped_tokens=len(margins),
        margin_max=max(margins, default=0.0),
    )


def _row_errors(
    outputs: Sequence[torch.Tensor], wide: Sequence[torch.Tensor], smallest: float
) -> torch.Tensor:
    """Root mean square of every row's errors, [rows of all requests]. Rounding the output itself makes errors
    of about `smallest` of the row, so none counts as smaller.
    """
    import torch

    found = []
    for given, exact in zip(outputs, wide, strict=True):
        exact = exact.double()
        error = (given.double() - exact).square().mean(dim=-1).sqrt()
        least = smallest * exact.square().mean(dim=-1).sqrt()
        found.append(error.maximum(least).clamp(min=1e-300).reshape(-1))
    return torch.cat(found)
