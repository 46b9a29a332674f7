"""What follows from a model's shape, and which shapes are refused."""

import pytest
from pydantic import ValidationError

from engine.domain.model import layer_kinds, tower_model
from engine.domain.rope import LinearScaling, Llama3Scaling, Rope
from engine.domain.vision import TowerSpec, VisionSpec
from tests.support.hand_model import HAND
from tests.support.one_device import model_of


def test_query_heads_divide_evenly_among_kv_heads():
    assert HAND.group_size == 2
    with pytest.raises(ValidationError, match="num_heads 4 is no multiple of num_kv_heads 3"):
        type(HAND).model_validate(HAND.model_dump() | {"num_kv_heads": 3})


@pytest.mark.parametrize(
    ("fields", "reorders"),
    [
        ({"positions": "learned"}, True),
        ({"positions": "rope"}, False),
        ({"positions": "learned", "qk_norm": True}, False),
        ({"positions": "learned", "score_softcap": 30.0}, False),
    ],
)
def test_scores_reorder_only_without_anything_between_q_and_w_k(fields, reorders):
    assert HAND.model_copy(update=fields).scores_reorder is reorders


def test_rope_scaling_needs_two_different_factors():
    with pytest.raises(ValidationError, match=r"low_freq_factor 4\.0 is not below high_freq_factor 4\.0"):
        Llama3Scaling(factor=8, low_freq_factor=4, high_freq_factor=4, original_max_positions=8192)


def changed(**fields):
    return type(HAND).model_validate(HAND.model_dump() | fields)


def test_a_window_is_of_its_layers_and_counts_the_querys_own_key():
    model = changed(num_layers=3, sliding_window={"size": 4, "layers": (0, 2)})
    assert [model.window_of(layer) for layer in range(3)] == [4, None, 4]
    assert [model.first_key(0, row) for row in (0, 3, 4, 9)] == [0, 0, 1, 6]
    assert model.first_key(1, 9) == 0


def test_layers_have_the_models_rotary_base_or_their_windows_or_none():
    window = {"size": 4, "layers": (0, 3), "rope_theta": 100.0}
    model = changed(
        positions="rope",
        head_dim=12,
        partial_rotary_factor=0.5,
        rope_theta=1e6,
        rope_scaling={"kind": "linear", "factor": 2.0},
        sliding_window=window,
        layers_without_rope=(2,),
    )
    assert model.rope_of(0) == model.rope_of(3) == Rope(100.0, None, 6)
    assert model.rope_of(1) == Rope(1e6, LinearScaling(factor=2.0), 6)
    assert model.rope_of(2) is None
    assert changed(positions="learned").rope_of(0) is None


def test_a_rope_scaling_without_its_kind_is_llama_3s():
    """Specs of version 2 have no other."""
    stored = {"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_positions": 8192}
    assert changed(rope_scaling=stored).rope_scaling == Llama3Scaling(**stored)


def test_kinds_of_layers_are_counted():
    model = changed(num_layers=6, sliding_window={"size": 4, "layers": (0, 1, 3, 4)})
    kinds = layer_kinds(model)
    assert [kind.layer for kind in kinds] == [0, 2]
    assert [kind.share for kind in kinds] == pytest.approx([4 / 6, 2 / 6])
    assert layer_kinds(HAND) == ((0, 1.0),)


def test_an_encoder_with_a_window_is_refused():
    with pytest.raises(ValidationError, match="of causal models only"):
        changed(causal=False, sliding_window={"size": 4, "layers": [0]})


def vision(**more):
    numbers = (0.5, 0.5, 0.5)
    figures = {"image_size": 24, "patch_size": 8, "resample": "bicubic", "crop": True}
    return VisionSpec(**(figures | {"mean": numbers, "std": numbers} | more))


def tower(**more):
    figures = {"num_layers": 3, "hidden_size": 24, "num_heads": 3, "intermediate_size": 40, "image_token": 9}
    return TowerSpec(**(figures | more))


def test_an_image_has_a_row_per_patch_and_the_cls_row_unless_a_tower_takes_it():
    assert (vision().num_patches, vision().num_rows, vision().patch_elements) == (9, 10, 192)
    assert vision(tower=tower()).num_rows == 9
    assert vision().pixel_shape == (3, 24, 24)
    with pytest.raises(ValidationError, match="image_size 24 is no multiple of patch_size 7"):
        vision(patch_size=7)


@pytest.mark.parametrize(("feature_layer", "used"), [(-1, 3), (-2, 2), (-3, 1)])
def test_layers_behind_the_features_are_not_computed(feature_layer, used):
    assert tower(feature_layer=feature_layer).used_layers == used


def test_a_tower_without_layers_or_with_uneven_heads_is_refused():
    with pytest.raises(ValidationError, match="feature_layer -4 is before the first of 3"):
        tower(feature_layer=-4)
    with pytest.raises(ValidationError, match="hidden_size 24 is no multiple of num_heads 5"):
        tower(num_heads=5)


def test_the_towers_own_model_has_its_layers_and_sees_all_rows():
    model = model_of("tiny-llava")
    own = tower_model(model)
    assert (own.num_layers, own.hidden_size, own.head_dim, own.intermediate_size) == (2, 24, 8, 40)
    assert (own.causal, own.has_head, own.vocab_size, own.max_positions) == (False, False, 0, 10)
    assert (model.image_rows, model.num_text_tokens) == (9, 100)
