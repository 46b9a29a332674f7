"""The parameters in which runs differ, and which of the runs are repeats of each other. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from engine.domain.numbers_as_text import shown
from engine.domain.units import unit_of_field
from engine.domain.values import Value

Item = TypeVar("Item")
Repeats = tuple[int, ...]
"""Runs that agree in all but the seed, by their places."""

FREE = re.compile(r"seed|cluster\.(title|description|(devices|switches|links)\[.*\]\.(title|source))")
"""What repeats may differ in: the seed, and words that change nothing."""

WORLD = "world"
ORDER = tuple(
    re.compile(pattern)
    for pattern in (
        *(r"strategy$", r"model\.name$", r"cluster\.name$", r"workload\.", r"params\.", r"scenario\."),
        *(r"cluster\.links", r"cluster\."),
    )
)
"""The parameters that people ask about first."""

NAMES = MappingProxyType({"strategy": "strategy", "model.name": "model", "cluster.name": "cluster"})
NOUNS = MappingProxyType(
    {
        "workload.new_tokens": "new tokens",
        "workload.prompt_tokens": "tokens of the prompt",
        "workload.requests": "requests",
        "workload.rate_per_s": "requests a second",
        "workload.users": "users",
        "workload.max_batch": "requests served together",
        "workload.scheduler": "scheduler",
        "workload.chunk_tokens": "rows of a step",
        "workload.pattern": "arrivals",
        "workload.think_s": "pause of users",
        "workload.kv_cache": "KV cache",
        "workload.assumed_tokens": "length that plans assume",
        "workload.slo_first_token_s": "objective for the first token",
        "workload.slo_per_token_s": "objective for later tokens",
        "workload.token_limit_s": "limit on the time of a token",
        "dilation": "dilation",
        "silence_s": "silence timeout",
        "failover": "after a failure",
        "compute_model": "compute model",
        "cluster.links[*].bit_per_s": "rate of links",
        "cluster.links[*].delay_s": "delay of links",
        "cluster.links[*].loss_frac": "loss of links",
        "cluster.devices[*].flop_per_s": "speed of devices",
        "cluster.devices[*].memory_bytes": "memory of devices",
        "cluster.devices[*].reserved_bytes": "memory that systems keep",
    }
)
CHANGE = re.compile(r"scenario\.changes\[(\d+)\]\.(\w+)")
OF_CHANGE = MappingProxyType(
    {
        "at_s": "time",
        "at_frac": "part of the run before",
        "after_token": "token before",
        "bit_per_s": "rate",
        "delay_s": "delay",
        "loss_frac": "loss",
        "jitter_s": "jitter",
        "factor": "slowdown",
        "link": "link",
        "device": "device",
        "direction": "direction",
        "kind": "kind",
    }
)
"""Fields of a timed change, by what they say of it."""
MOST_DIGITS = 17


class ParamRow(Value):
    """One field of the specs by its flat path; None where a run has no such field."""

    path: str
    values: tuple[Any, ...]
    differs: bool


class Parameter(NamedTuple):
    """A parameter in which compared runs differ, with its value in each.

    `path` is that of its first field. `noun` is what a value needs before it to be understood: "new tokens"
    before 16; empty for a name. `values` and `texts` are per run; texts are equal where values are, and only
    there.
    """

    path: str
    title: str
    noun: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]

    @property
    def unit(self) -> str:
        return unit_of_field(self.path) or ""

    @property
    def is_numeric(self) -> bool:
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    @property
    def is_nested(self) -> bool:
        """Whether a value is a list or an object, which has no place on an axis that people can read."""
        return any(isinstance(value, list | tuple | dict) for value in self.values)

    def told(self, run: int) -> str:
        """A value with what it is of, where it does not say so itself."""
        return f"{self.noun} {self.texts[run]}".strip()


def parameters_of(params: Sequence[ParamRow]) -> tuple[Parameter, ...]:
    """The parameters that differ, but seed and world, in the order in which they are offered. Fields of one
    list that have the same values, as the rates of all links of a cluster, are one parameter.
    """
    rows = [row for row in params if row.differs and not FREE.fullmatch(row.path) and row.path != WORLD]
    alike = in_classes(rows, lambda row: (_pattern(row.path), tuple(map(key_of, row.values))))
    found = sorted((_parameter([row.path for row in group], group[0].values) for group in alike), key=_rank)
    titles = [one.title for one in found]
    return tuple(
        one if titles.count(one.title) == 1 else one._replace(title=one.path, noun=one.path) for one in found
    )


def repeats_of(params: Sequence[ParamRow], number: int) -> tuple[Repeats, ...]:
    """All runs in groups of repeats, in the order of their first runs. The world counts: a prediction is no
    repeat of a measurement.
    """
    deciding = [row for row in params if row.differs and not FREE.fullmatch(row.path)]
    groups = in_classes(range(number), lambda run: tuple(key_of(row.values[run]) for row in deciding))
    return tuple(map(tuple, groups))


def telling(
    worlds: Sequence[str],
    groups: Sequence[Repeats],
    parameters: Sequence[Parameter],
    given: Sequence[Parameter] = (),
) -> tuple[Parameter, ...]:
    """As few parameters as can be that, with `given`, tell all groups of one world apart: each next one
    separates most.
    """
    found: list[Parameter] = []

    def count(more: Sequence[Parameter]) -> int:
        every = (*given, *found, *more)
        return len({(worlds[g[0]], *(key_of(one.values[g[0]]) for one in every)) for g in groups})

    while True:
        separate = count(())
        best = max(parameters, key=lambda one: count((one,)), default=None)  # the first among equals
        if best is None or count((best,)) <= separate:
            return tuple(sorted(found, key=parameters.index))
        found.append(best)


def in_classes(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Items with equal keys together."""
    found: dict[Hashable, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def key_of(value: Any) -> str:
    """What is equal for equal values alone: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=str)


def texts_of(path: str, values: Sequence[Any]) -> tuple[str, ...]:
    """Texts that are equal only where the values are: numbers get as many digits as tell them apart, and
    texts that read like another value are quoted.
    """
    different = len(set(map(key_of, values)))
    digits = next(
        (n for n in range(3, MOST_DIGITS) if _tells([v for v in values if _is_number(v)], path, n)),
        MOST_DIGITS,
    )
    texts = [_text(path, value, digits) for value in values]
    if len(set(texts)) == different:
        return tuple(texts)
    return tuple(
        json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text
        for value, text in zip(values, texts, strict=True)
    )


def _tells(numbers: Sequence[Any], path: str, digits: int) -> bool:
    return len({_text(path, one, digits) for one in numbers}) == len(set(numbers))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(path: str, value: Any, digits: int) -> str:
    if value is None:
        return "–"
    if value == "":
        return '""'
    if _is_number(value):
        unit = unit_of_field(path)
        return shown(value, unit, digits) if unit else str(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pattern(path: str) -> str:
    """`cluster.links[a--b].bit_per_s` → `cluster.links[*].bit_per_s`"""
    return re.sub(r"\[[^\]]*\]", "[*]", path)


def _parameter(paths: Sequence[str], values: tuple[Any, ...]) -> Parameter:
    path, pattern = paths[0], _pattern(paths[0])
    known = NOUNS.get(pattern) or (_of_change(path) if len(paths) == 1 else None)
    title = NAMES.get(path) or known or (pattern if len(paths) > 1 else path)
    noun = "" if path in NAMES else known or pattern.rpartition(".")[2]
    if len(paths) > 1:
        told = re.sub(r" of (?=(links|devices)$)", f" of {len(paths)} ", title)
        title = f"{title} ({len(paths)} alike)" if told == title else told
    return Parameter(path, title, noun, values, texts_of(path, values))


def _of_change(path: str) -> str | None:
    """`scenario.changes[0].at_s` → `time of change 1`, as people count; None for what is no field of one."""
    found = CHANGE.fullmatch(path)
    if found is None or found[2] not in OF_CHANGE:
        return None
    return f"{OF_CHANGE[found[2]]} of change {int(found[1]) + 1}"


def _rank(parameter: Parameter) -> int:
    found = (rank for rank, pattern in enumerate(ORDER) if pattern.match(parameter.path))
    return next(found, len(ORDER))
