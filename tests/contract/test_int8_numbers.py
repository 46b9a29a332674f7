"""With activations of 8 bits chips that share a model give one device's numbers, and those of `transformers`
whose products take in numbers that are rounded likewise.
"""

from functools import cache

import pytest
import torch
from test_numbers import CLUSTERS, results

from engine.domain.errors import PlanError, SpecError
from engine.domain.model import in_int8
from engine.models.inputs.prompts import requests_of
from engine.models.reference.transformers_outputs import compute
from engine.runs.predict import editable_plan, prepare
from engine.strategies.mcu.plan import shares_of
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, spec_of, star

FAMILIES = {
    model.family: in_int8(model.model_copy(update={"weight_bits": 8.0})) for model in (GPT2, LLAMA, BERT)
}
"""Heads of 8 numbers, each with a scale."""


@cache
def alone(family, rows=11):
    return results("single", FAMILIES[family], CLUSTERS["alone"], rows=rows)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cluster", ["terminal", "uneven", "more-devices-than-heads", "five"])
def test_any_number_of_chips_gives_one_devices_numbers(family, cluster):
    """But for a sum between two whole numbers, which another order of its terms rounds to the other one:
    it is rare, and not in the prompts of all lengths.
    """
    chips = {**CLUSTERS, "five": star([1e10] * 5)}[cluster]
    errors = (
        (results("mcu", FAMILIES[family], chips, rows=rows)[0] - alone(family, rows)[0]).abs().max()
        for rows in (11, 10, 9, 8)
    )
    assert any(error < 1e-4 for error in errors)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_device_gives_the_numbers_of_transformers_with_rounded_inputs(family):
    model = FAMILIES[family]
    spec = spec_of("single", model, CLUSTERS["alone"], new_tokens=3 if model.causal else 0)
    source, _ = run_in_memory(spec, plan_of(spec), requests_of(spec))
    found = torch.stack(source.logits[0]) if model.causal else source.states[0]
    library = compute(spec)["logits.0" if model.causal else "hidden.0"]
    torch.testing.assert_close(found, library, rtol=1e-4, atol=1e-4)


def test_rounding_what_products_take_in_moves_numbers_a_little():
    weights_only = results("single", LLAMA.model_copy(update={"weight_bits": 8.0}), CLUSTERS["alone"])[0]
    moved = (alone("llama")[0] - weights_only).abs().max()
    assert 1e-4 < moved / weights_only.abs().max() < 0.05


def test_columns_are_cut_between_groups_that_share_a_scale():
    model = FAMILIES["llama"]
    shares = shares_of(star([1e10] * 5), model, allow_kv_dup=False)
    assert [share.columns for share in shares] == [(0, 16), (16, 32), (32, 48), (48, 56), (56, 64)]


def test_a_plan_made_by_hand_cuts_columns_there_too():
    spec = spec_of("mcu", FAMILIES["llama"], CLUSTERS["uneven"])
    by_hand = editable_plan(spec, plan_of(spec))
    assert {unit.name: unit.step for unit in by_hand.units}["columns"] == 8
    first, second, *others = by_hand.plan.devices
    moved = [
        first.model_copy(update={"columns": first.columns - 1}),
        second.model_copy(update={"columns": second.columns + 1}),
    ]
    plan = by_hand.plan.model_copy(update={"devices": (*moved, *others)}).model_dump(mode="json")
    with pytest.raises(PlanError, match=r"cuts columns at \d+, expected a multiple of 8"):
        prepare(spec.model_copy(update={"params": {"plan": plan}}))


def test_other_methods_and_models_are_refused_in_a_sentence():
    with pytest.raises(
        PlanError, match=r"voltage cannot .*multiplies no whole numbers: choose single or mcu"
    ):
        prepare(spec_of("voltage", FAMILIES["gpt2"], CLUSTERS["uneven"]))
    with pytest.raises(SpecError, match=r"weight_bits 0: .* set weight_bits = 8"):
        in_int8(GPT2)
    halves = GPT2.model_copy(update={"dtype": "bfloat16", "weight_bits": 8.0})
    with pytest.raises(SpecError, match=r"the model has dtype bfloat16, expected .* float32 without experts"):
        in_int8(halves)
    odd = GPT2.model_copy(update={"head_dim": 9, "weight_bits": 8.0})
    with pytest.raises(SpecError, match=r"head_dim 9.*expected multiples of 4"):
        in_int8(odd)
