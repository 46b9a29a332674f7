"""What follows from a model's shape, and which shapes are refused."""

import pytest
from pydantic import ValidationError

from engine.domain.model import RopeScaling, tower_model
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
    ],
)
def test_scores_reorder_only_without_anything_between_q_and_w_k(fields, reorders):
    assert HAND.model_copy(update=fields).scores_reorder is reorders


def test_rope_scaling_needs_two_different_factors():
    with pytest.raises(ValidationError, match=r"low_freq_factor 4\.0 is not below high_freq_factor 4\.0"):
        RopeScaling(factor=8, low_freq_factor=4, high_freq_factor=4, original_max_positions=8192)


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
