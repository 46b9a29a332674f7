"""Parameters to try every strategy with, derived from its `Params`: a new one needs no entry in a test."""

from typing import Literal, get_args, get_origin

from engine.strategies.registry import STRATEGIES


def choices_of(field):
    """The values of a parameter that has few: of a `Literal` or a bool, the default first."""
    default, kind = field.get_default(call_default_factory=True), field.annotation
    values = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
    return [default, *(value for value in values if value != default)] if values else []


def derived_variants(chosen):
    """As few sets of parameters as have every choice of every parameter once; the first has the defaults."""
    choices = {name: choices_of(field) for name, field in chosen.Params.model_fields.items()}
    choices = {name: values for name, values in choices.items() if values}
    rows = max((len(values) for values in choices.values()), default=1)
    found = [
        {name: values[row % len(values)] for name, values in choices.items() if row % len(values)}
        for row in range(rows)
    ]
    return [part for params in found for part in _valid(chosen.Params, params)]


def _valid(kind, params):
    """The set itself, or apart from it the parameters that planner=best does not read."""
    unread = [
        name for name in getattr(kind, "rule", ()) if name in params and params.get("planner") == "best"
    ]
    if not unread:
        return [params]
    others = {name: value for name, value in params.items() if name not in unread}
    return [others, {name: params[name] for name in unread}]


def variants(chosen_by_hand):
    """By strategy: the sets in `chosen_by_hand`, or derived ones where it has none."""
    return {chosen.name: chosen_by_hand.get(chosen.name) or derived_variants(chosen) for chosen in STRATEGIES}
