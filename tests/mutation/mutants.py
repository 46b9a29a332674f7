"""Mutants of a module: small changes that its tests should notice, made by cosmic-ray's operators.

Only operators that change a decision or a number are used: arithmetic, comparisons, conditions, constants
and loops.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

OPERATORS = (
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Div_Mul",
    "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceBinaryOperator_Mod_Add",
    "ReplaceBinaryOperator_Pow_Mul",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_Lt_GtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_LtE_Gt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_Gt_LtE",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_GtE_Lt",
    "ReplaceComparisonOperator_Is_IsNot",
    "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "AddNot",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
"""Of cosmic-ray's `core` operators."""


class Mutant(NamedTuple):
    """The `occurrence`-th place where `operator` applies; `line` changes from `old` to `new`."""

    operator: str
    occurrence: int
    line: int
    old: str
    new: str
    text: str
    """The whole changed module."""


def sample(module: Path, count: int, seed: int) -> list[Mutant]:
    """`count` different mutants of the module, or all if there are fewer; the same ones for the same seed."""
    source = module.read_text(encoding="utf-8")
    tree = get_ast(source)
    places = [
        (name, occurrence)
        for name in OPERATORS
        for occurrence in range(
            sum(len(list(_operator(name).mutation_positions(node))) for node in ast_nodes(tree))
        )
    ]
    Random(f"{seed}/{module.name}").shuffle(places)
    made: list[Mutant] = []
    for name, occurrence in places:
        if len(made) == count:
            break
        mutant = _mutant(source, name, occurrence)
        if mutant is not None:
            made.append(mutant)
    return made


def _operator(name: str):  # type: ignore[no-untyped-def]  # cosmic-ray has no types
    return get_operator(f"core/{name}")()


def _mutant(source: str, name: str, occurrence: int) -> Mutant | None:
    """None where the change leaves the text as it was."""
    text = mutate_code(source, _operator(name), occurrence)
    if text is None or text == source:
        return None
    pairs = zip(source.splitlines(), text.splitlines(), strict=False)
    line, (old, new) = next((n, pair) for n, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    return Mutant(name, occurrence, line, old.strip(), new.strip(), text)
