"""The parameters that tests derive from a strategy's `Params`."""

from typing import Literal

from pydantic import Field

from engine.program.strategy import Params
from engine.strategies.registry import STRATEGIES
from tests.support.variants import choices_of, derived_variants, variants


class Made(Params):
    order: Literal["up", "down", "random"] = "down"
    eager: bool = True
    window: int = Field(default=2, ge=1)


class Chosen:
    name, Params = "made", Made


def test_every_choice_is_in_some_variant_and_the_first_has_the_defaults():
    assert choices_of(Made.model_fields["order"]) == ["down", "up", "random"]
    assert derived_variants(Chosen) == [{}, {"order": "up", "eager": False}, {"order": "random"}]


def test_variants_are_values_of_the_parameters():
    for chosen in STRATEGIES:
        for params in derived_variants(chosen):
            chosen.Params.model_validate(params)


def test_a_strategy_without_variants_chosen_by_hand_gets_derived_ones():
    found = variants({"gpipe": [{"by": "even"}]})
    assert list(found) == [chosen.name for chosen in STRATEGIES]
    assert found["gpipe"] == [{"by": "even"}] and found["single"] == [{}]
    assert {"schedule": "flush"} in found["pipeline_offload"]
