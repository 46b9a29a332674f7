"""Which rows go to which devices: by the router's weights, or drawn where there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

from engine.domain.model import ModelSpec
from engine.ops.tensors import Tensor, narrow, shape_of

DRAWN_APART = 64
"""Of more rows than this, all layers and steps have the same drawn choices."""


class Call(NamedTuple):
    """What a device has to do: for which rows, in how many pairs of a row and an expert, with how many
    different experts.
    """

    rows: tuple[int, ...]
    pairs: int
    chosen: int


class Choices:
    """The calls of all devices, as a decision. Device i has experts [bounds[i], bounds[i + 1]).

    Rows travel as a number in hexadecimal digits: bit r is row r.
    """

    def __init__(self, model: ModelSpec, bounds: Sequence[int], seed: int):
        self.model, self.bounds, self.seed = model, bounds, seed

    def __call__(self, routed_1NX: Tensor) -> list[list[int | str]]:
        """`routed_1NX` has the rows as `Route` gives them."""
        hidden = self.model.hidden_size
        weight_NE = narrow(routed_1NX, 2, hidden, hidden + self.model.num_experts)[0]
        found = []
        for start, stop in zip(self.bounds, self.bounds[1:], strict=False):
            takes_Ne = weight_NE[:, start:stop] != 0
            rows = takes_Ne.any(dim=1).nonzero()[:, 0].tolist()
            found.append(_answer(rows, dict(enumerate(takes_Ne.sum(dim=0).tolist(), start))))
        return found

    def prior(self, routed_1NX: Tensor) -> list[list[int | str]]:
        """As independent choices give them: as often as `expert_load` says, or evenly among `likely_experts`
        that are spread over the numbers.
        """
        rows = shape_of(routed_1NX)[1]
        drawn = drawn_choices(
            self.model.num_experts,
            self.model.likely_experts or self.model.num_experts,
            self.model.experts_per_token,
            rows,
            self.seed if rows <= DRAWN_APART else 0,
            self.model.expert_load,
        )
        found = []
        for start, stop in zip(self.bounds, self.bounds[1:], strict=False):
            mine = [[expert for expert in row if start <= expert < stop] for row in drawn]
            takers = [row for row, experts in enumerate(mine) if experts]
            found.append(_answer(takers, Counter(one for row in mine for one in row)))
        return found


def _answer(rows: Sequence[int], load: Mapping[int, int]) -> list[int | str]:
    """`load` are the rows of each expert."""
    chosen = {expert: count for expert, count in sorted(load.items()) if count}
    said = " ".join(f"{expert}:{count}" for expert, count in chosen.items())
    return [f"{sum(1 << row for row in rows):x}", sum(chosen.values()), len(chosen), said]


def calls_of(answer: Sequence[Sequence[int | str]]) -> list[Call]:
    """What a decision says, by device."""
    found = []
    for rows, pairs, chosen, *_ in answer:
        bits = int(str(rows), 16)
        taken = tuple(row for row in range(bits.bit_length()) if bits >> row & 1)
        found.append(Call(taken, int(pairs), int(chosen)))
    return found


def load_of(answer: Sequence[Sequence[int | str]]) -> Counter[int]:
    """How many rows of a decision chose each expert."""
    found: Counter[int] = Counter()
    for _, _, _, *said in answer:  # without it in records of before
        for one in str(said[0]).split() if said else ():
            expert, _, rows = one.partition(":")
            found[int(expert)] += int(rows)
    return found


@lru_cache(maxsize=256)
def drawn_choices(
    experts: int, likely: int, each: int, rows: int, seed: int, load: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], ...]:
    """`each` experts of every row: the same ones for the same arguments. With `load`, the rows of each
    expert, in proportion to it, one after another without those that the row has (Efraimidis and Spirakis,
    2006).
    """
    random = Random(seed)
    if load:
        likely_ones = [(expert, one) for expert, one in enumerate(load) if one]
        drawn = (
            sorted((random.expovariate(one), expert) for expert, one in likely_ones)[:each]
            for _ in range(rows)
        )
        return tuple(tuple(expert for _, expert in row) for row in drawn)
    numbers = [index * experts // likely for index in range(likely)]
    return tuple(tuple(random.sample(numbers, each)) for _ in range(rows))
