"""What experiments declare of their figures: inputs, repeated figures, sentences, and other regimes."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from engine.domain.values import NonNegative, Value

FILE = Path(__file__).with_name("declared.toml")

InputField = Literal[
    "flop_per_s",
    "memory_byte_per_s",
    "disk_byte_per_s",
    "memory_bytes",
    "reserved_bytes",
    "tile_memory_bytes",
    "message_overhead_s",
    "op_overhead_s",
    "links.bit_per_s",
    "model.weight_bits",
    "workload.prompt_tokens",
    "workload.new_tokens",
    "workload.assumed_tokens",
]
"""What can be put in without a paper's word: each of them is moved in every experiment, or stated."""


class Input(Value):
    """What was put in, `name` in words. `set_by` are the figures that it was fitted to.

    A number is moved: every run of `experiments`, which may be patterns, is predicted again with `fields` of
    all workers, of the links, of the model or of the workload multiplied by `by`, 0 to leave it out, in runs
    of `strategies` alone where it names some. Figures of ours that move with it follow from it. A choice has
    neither `experiments` nor `fields`.
    """

    name: str
    experiments: tuple[str, ...] = ()
    set_by: tuple[str, ...] = ()
    fields: tuple[InputField, ...] = ()
    strategies: tuple[str, ...] = ()
    by: NonNegative = 0.8

    @model_validator(mode="after")
    def _is_moved_or_a_choice(self) -> Input:
        if bool(self.experiments) != bool(self.fields):
            raise ValueError(
                f"{self.name}: what is put in to experiments has fields that are moved there; give both or "
                "neither"
            )
        return self


class Move(NamedTuple):
    """Inputs that are moved at once: one, or two of which neither alone moves ours."""

    inputs: tuple[Input, ...]

    @property
    def name(self) -> str:
        return ", and ".join(one.name for one in self.inputs)

    @property
    def by(self) -> float:
        """The factor that is farthest from 1; 0 where something is left out."""
        factors = [one.by for one in self.inputs]
        return max(factors, key=lambda by: abs(math.log(by))) if all(factors) else 0.0

    @property
    def told(self) -> str:
        """What is done to the inputs, after "with": `0.80 times of it`."""
        each = [f"with {one.by:.2f} times of" if one.by else "without" for one in self.inputs]
        if len(each) == 1:
            return f"{each[0]} it"
        return " and ".join(f"{did} {one.name}" for did, one in zip(each, self.inputs, strict=True))


class Stated(Value):
    """Fields that need no moving in some experiments: the paper states them, or no run there reads them."""

    experiments: tuple[str, ...] = Field(min_length=1)
    fields: tuple[InputField, ...] = Field(min_length=1)
    why: str


class Repeat(Value):
    """Figures that state by arithmetic what another figure, `of`, states: they count once."""

    figures: tuple[str, ...] = Field(min_length=1)
    of: str


class Sentence(Value):
    """Figures that measure a sentence, which is true only `above` a limit, however near they are; or, without
    one, where the effect is none.
    """

    figures: tuple[str, ...] = Field(min_length=1)
    text: str
    above: float | None = None


class OtherRegime(Value):
    """Figures whose runs here are not in the regime of the paper's own, and so say nothing of them."""

    figures: tuple[str, ...] = Field(min_length=1)
    why: str


class Declared(Value):
    """The file `declared.toml`."""

    input: tuple[Input, ...]
    stated: tuple[Stated, ...]
    repeat: tuple[Repeat, ...]
    sentence: tuple[Sentence, ...]
    other_regime: tuple[OtherRegime, ...]


@cache
def declared() -> Declared:
    return Declared.parse(tomllib.loads(FILE.read_text(encoding="utf-8")), FILE.name)


def matches(figure_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(figure_id, pattern) for pattern in patterns)


def input_set_by(figure_id: str) -> Input | None:
    """The input that a figure set."""
    return next((one for one in declared().input if matches(figure_id, one.set_by)), None)


def inputs_moved_in(experiment: str) -> tuple[Input, ...]:
    """The inputs with which the runs of an experiment are predicted again."""
    return tuple(one for one in declared().input if one.fields and matches(experiment, one.experiments))


def moves_of(experiment: str) -> tuple[Move, ...]:
    """What is moved in an experiment: every input alone, then every two at once."""
    inputs = inputs_moved_in(experiment)
    return tuple(Move(some) for number in (1, 2) for some in combinations(inputs, number))


def stated_in(experiment: str) -> set[InputField]:
    """The fields that need no moving in an experiment."""
    return {
        field for one in declared().stated if matches(experiment, one.experiments) for field in one.fields
    }


def repeated_by(figure_id: str) -> str:
    """What a figure repeats, in words; "" for one that counts."""
    return next((one.of for one in declared().repeat if matches(figure_id, one.figures)), "")


def sentence_of(figure_id: str) -> Sentence | None:
    return next((one for one in declared().sentence if matches(figure_id, one.figures)), None)


def other_regime_of(figure_id: str) -> OtherRegime | None:
    return next((one for one in declared().other_regime if matches(figure_id, one.figures)), None)
