"""Conditions on the coordinates of a point: `rate <= 1e8 and strategy in ["single", "voltage"]`.

The language has names of factors, numbers, texts, `true` and `false`, lists, comparisons (chained ones, too),
`in` and `not in`, `and`, `or`, `not`, and + - * / on numbers. Python parses the text; nothing of it is
executed: every node is checked to be one of these, and its value worked out here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.quantity import Coordinate
from engine.domain.values import same
from engine.experiments.design.syntax import parsed

MAX_CHARS = 500
MAX_NODES = 200

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_NODES = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Compare),
    *(ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple, ast.Eq, ast.NotEq, ast.In, ast.NotIn),
    *_ARITHMETIC,
    *_ORDER,
)
"""All that a condition may have."""
_WORDS = {"true": True, "false": False, "True": True, "False": False}


def check_condition(text: str, names: Iterable[str]) -> None:
    """Check that `text` is a condition on nothing but `names`; raises `SpecError`."""
    known = tuple(names)
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Name) and node.id not in _WORDS and node.id not in known:
            raise SpecError(
                f"condition {text!r}: there is no factor {node.id}: there are {', '.join(known)}."
            )


def holds(text: str, coordinates: Mapping[str, Coordinate]) -> bool:
    """Whether the condition is true at `coordinates`. Raises `SpecError` where it makes no sense there, such
    as an order between a text and a number.
    """
    value = _value(_parsed(text).body, coordinates, text)
    if not isinstance(value, bool):
        raise SpecError(f"condition {text!r}: is {value!r} and not true or false: compare it with something.")
    return value


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.Expression:
    """The syntax tree, of known nodes only."""
    if len(text) > MAX_CHARS:
        raise SpecError(f"condition {text[:40]!r}…: {len(text)} characters, and the limit is {MAX_CHARS}.")
    try:
        tree: ast.Expression = parsed(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(
            f"condition {text!r}: cannot be read: expected something like rate <= 1e8."
        ) from error
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise SpecError(f"condition {text[:40]!r}…: has {len(nodes)} parts, and the limit is {MAX_NODES}.")
    for node in nodes:
        _check_node(node, text)
    return tree


def _check_node(node: ast.AST, text: str) -> None:
    is_value = not isinstance(node, ast.Constant) or isinstance(node.value, bool | int | float | str)
    if not isinstance(node, _NODES) or not is_value:
        raise SpecError(
            f"condition {text!r}: {type(node).__name__} is no part of conditions: they have factors, values, "
            "comparisons, and, or, not, in, + - * /."
        )


def _value(node: ast.AST, coordinates: Mapping[str, Coordinate], text: str) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name in coordinates:
                return coordinates[name]
            if name in _WORDS:
                return _WORDS[name]
            raise SpecError(
                f"condition {text!r}: there is no factor {name}: there are {', '.join(coordinates)}."
            )
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, coordinates, text) for item in items]
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_truth(part, coordinates, text) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_truth(part, coordinates, text) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _truth(part, coordinates, text)
        case ast.UnaryOp(operand=part):
            return -_number(_value(part, coordinates, text), text)
        case ast.BinOp(left=left, op=sign, right=right):
            numbers = [_number(_value(side, coordinates, text), text) for side in (left, right)]
            if isinstance(sign, ast.Div) and numbers[1] == 0:
                raise SpecError(f"condition {text!r}: divides by 0.")
            return _ARITHMETIC[type(sign)](*numbers)
        case ast.Compare(left=left, ops=signs, comparators=others):
            values = [_value(side, coordinates, text) for side in (left, *others)]
            return all(
                _compared(a, sign, b, text) for a, sign, b in zip(values, signs, values[1:], strict=False)
            )
    raise SpecError(f"condition {text!r}: cannot be read.")


def _truth(node: ast.AST, coordinates: Mapping[str, Coordinate], text: str) -> bool:
    value = _value(node, coordinates, text)
    if not isinstance(value, bool):
        raise SpecError(f"condition {text!r}: {value!r} is not true or false: compare it with something.")
    return value


def _number(value: Any, text: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpecError(f"condition {text!r}: {value!r} is no number.")
    return value


def _compared(one: Any, sign: ast.cmpop, other: Any, text: str) -> bool:
    match sign:
        case ast.Eq():
            return same(one, other)
        case ast.NotEq():
            return not same(one, other)
        case ast.In() | ast.NotIn():
            if not isinstance(other, list):
                raise SpecError(f"condition {text!r}: `in` needs a list in brackets.")
            return any(same(one, item) for item in other) == isinstance(sign, ast.In)
    if isinstance(one, str) and isinstance(other, str):
        return _ORDER[type(sign)](one, other)
    return _ORDER[type(sign)](_number(one, text), _number(other, text))
