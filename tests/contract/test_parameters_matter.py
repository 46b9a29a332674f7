"""Every parameter of every strategy changes what a run does: its plan, its trace or its numbers.

Each choice of a parameter that has few, and some value of every other one, must do something else than the
default in one of the runs of `tests/support/parameter_cases.py`.
"""

from random import Random
from typing import Literal, get_origin

import pytest

from bench.fuzz.params import shares_of, values_of
from engine.domain.errors import EdgeLoomError
from engine.strategies.registry import STRATEGIES
from tests.support.parameter_cases import cases_of, with_params

UNSEEN = {
    "adaptlink": {("offload_attention", "none")},
    "edgeformer": {("on_miss", "nearest"), ("bandwidth", "announced")},
    "lime": {("lookahead_tokens", None)},
}
"""What no run of these shows; tests of the strategy itself do."""
BY_HAND = ("plan", None)
"""Plans made by hand have a test of their own, tests/contract/test_plans_given_back.py."""
MANY_RUNS = {"edgeformer", "lime", "tpi_llm", "tpi_llm_offload"}
"""Campaigns: they have parameters that need many runs, or long ones, to be seen."""
AT_ONCE = 4
"""Values of a number or a name that are tried in each run."""


def offered(field, name, cluster):
    """Values other than the default."""
    if name == "ratio" and field.annotation is str:
        return [shares_of(Random(3), cluster)]
    return [value for value in values_of(field, cluster) if value != field.default]


def has_few_choices(field):
    return field.annotation is bool or get_origin(field.annotation) is Literal


def without_effect(chosen):
    """(parameter, value) of each choice, (parameter, None) of each other parameter, that changed nothing."""
    fields = chosen.Params.model_fields
    left = {}
    for name, field in fields.items():
        values = set(offered(field, name, cluster_of(chosen))) if has_few_choices(field) else {None}
        left[name] = {
            value for value in values if (name, value) not in {*UNSEEN.get(chosen.name, ()), BY_HAND}
        }
    for ways, spec in cases_of(chosen.name):
        known = {}

        def seen(observe, spec, known=known):
            key = (observe, repr(sorted(spec.params.items(), key=repr)))
            if key not in known:
                try:
                    known[key] = observe(spec)
                except EdgeLoomError as refusal:
                    known[key] = type(refusal).__name__
            return known[key]

        for name, values in left.items():
            field = fields[name]
            if not values:
                continue
            plain = with_params(spec, **{name: field.default})
            tried = values if has_few_choices(field) else offered(field, name, spec.cluster)[:AT_ONCE]
            for value in list(tried):
                if not values:
                    break  # one value of a number or a name is enough
                other = with_params(spec, **{name: value})
                if any(seen(observe, other) != seen(observe, plain) for observe in ways):
                    values.discard(value if has_few_choices(field) else None)
    return sorted(((name, value) for name, values in left.items() for value in values), key=repr)


def cluster_of(chosen):
    return next(spec for _, spec in cases_of(chosen.name)).cluster


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.long("engine")] if one.name in MANY_RUNS else [])
        for one in STRATEGIES
    ],
)
def test_every_parameter_changes_a_plan_a_trace_or_numbers(chosen):
    if not chosen.Params.model_fields:
        return
    assert without_effect(chosen) == []
