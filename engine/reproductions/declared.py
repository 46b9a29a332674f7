"""What experiments declare of their figures: inputs, repeated figures, and sentences with a limit."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

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
    "workload.prompt_tokens",
    "workload.new_tokens",
    "workload.assumed_tokens",
]
"""What can be put in without a paper's word: each of them is moved in every experiment, or stated."""


class Input(Value):
    """A number that was put in, `name` in words. `set_by` are the figures that it was fitted to.

    Every run of `experiments`, which may be patterns, is predicted again with `fields` of all workers, of the
    links or of the workload multiplied by `by`, 0 to leave it out: figures of ours that move with it follow
    from it.
    """

    name: str
    experiments: tuple[str, ...] = ()
    set_by: tuple[str, ...] = ()
    fields: tuple[InputField, ...] = ()
    by: NonNegative = 0.8


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
    """Figures that measure a sentence, which is true only `above` a limit, however near they are."""

    figures: tuple[str, ...] = Field(min_length=1)
    text: str
    above: float


class Declared(Value):
    """The file `declared.toml`."""

    input: tuple[Input, ...]
    stated: tuple[Stated, ...]
    repeat: tuple[Repeat, ...]
    sentence: tuple[Sentence, ...]


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
