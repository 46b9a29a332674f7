"""Draws values of a strategy's parameters from their types, choices and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from engine.domain.cluster import ClusterSpec
from engine.program.strategy import Params
from engine.strategies.planner.choice import PlannedParams

WIDTH = 8
"""How far above its lower bound an integer without upper bound is drawn."""
LISTS_OF_SHARES = ("ratio",)
"""Parameters whose text is one share per worker; all other texts are names of workers."""


def draw_params(random: Random, kind: type[Params], cluster: ClusterSpec) -> dict[str, Any]:
    """Draw parameters of a strategy; each has its default in half of the draws."""
    found = {}
    for name, field in kind.model_fields.items():
        shares = name in LISTS_OF_SHARES and field.annotation is str
        offered = [shares_of(random, cluster)] if shares else values_of(field, cluster)
        values = [value for value in offered if value != field.default]
        if values and random.random() < 0.5:
            found[name] = random.choice(values)
    if found.get("planner") == "best" and issubclass(kind, PlannedParams):
        found = {name: value for name, value in found.items() if name not in kind.rule}
    return found


def shares_of(random: Random, cluster: ClusterSpec) -> str:
    """Shares of all workers in tenths and with sum 1, like "0.5, 0.3, 0.2"."""
    cuts = sorted(random.sample(range(1, 10), len(cluster.workers) - 1))
    tenths = [stop - start for start, stop in pairwise([0, *cuts, 10])]
    return ", ".join(str(share / 10) for share in tenths)


def values_of(field: FieldInfo, cluster: ClusterSpec) -> list[Any]:
    """The choices of one parameter: all of a few, else numbers near its bounds, or names of workers."""
    values: list[Any] = []
    for one, bounds in _kinds(field.annotation, field.metadata):
        if get_origin(one) is Literal:
            values += get_args(one)
        elif one is bool:
            values += [False, True]
        elif one is int:
            low, high = _bounds(bounds)
            first = 0 if low is None else int(low) + any(isinstance(bound, Gt) for bound in bounds)
            last = first + WIDTH if high is None else min(int(high), first + WIDTH)
            values += range(first, last + 1)
        elif one is float:
            low, high = _bounds(bounds)
            bottom = 0.0 if low is None else float(low)
            top = bottom + 2.0 if high is None else float(high)
            values += [bottom + share * (top - bottom) for share in (0.02, 0.1, 0.5, 0.9, 0.99)]
        elif one is str:
            values += [cluster.devices[rank].name for rank in cluster.workers]
    return values


def _kinds(kind: Any, bounds: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The types of a union, each with its own bounds."""
    if get_origin(kind) is None or get_origin(kind) is Literal:
        yield kind, bounds
        return
    for one in get_args(kind):
        inner = getattr(one, "__metadata__", None)
        if inner is None:
            yield from _kinds(one, bounds)
        else:
            found = [bound for field in inner for bound in getattr(field, "metadata", (field,))]
            yield from _kinds(one.__origin__, [*bounds, *found])


def _bounds(metadata: list[Any]) -> tuple[float | None, float | None]:
    lows: list[Any] = [bound.ge for bound in metadata if isinstance(bound, Ge)]
    lows.extend(bound.gt for bound in metadata if isinstance(bound, Gt))
    highs: list[Any] = [bound.le for bound in metadata if isinstance(bound, Le)]
    highs.extend(bound.lt for bound in metadata if isinstance(bound, Lt))
    return max(lows, default=None), min(highs, default=None)
