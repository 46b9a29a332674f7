"""The tables of config keys have every key of the library's configuration classes, with its default."""

import dataclasses
import json

import pytest
from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from engine.models import catalogue
from engine.models.families import hf_config, keys
from engine.models.families.llava import CLIP_KEYS
from engine.models.families.registry import FAMILIES
from engine.models.families.rope import ORIGINAL, ROPE_KEYS
from engine.models.reference import transformers_outputs
from tests.support.one_device import TINY, spec_of

TABLES = {row.name: row.keys for row in FAMILIES} | {"clip_vision_model": CLIP_KEYS}
BASE = {field.name: field for field in dataclasses.fields(PreTrainedConfig)}
SAMPLES = (None, True, 3, 0.5, "x", ["x"], [3], {"1": "x"}, {"x": 1})
"""A value of each type that JSON has."""
INTERNAL = {
    *(
        "model_type",
        "name_or_path",
        "attribute_map",
        "sub_configs",
        "sub_configs_defaults",
        "rope_parameters",
    ),
    *("per_layer_config", "is_heterogeneous", "base_config_key", "extra_files", "extra_config_files"),
    *("base_model_ep_plan", "base_model_fsdp_plan", "base_model_pp_plan", "base_model_tp_plan", "auto_map"),
    *("vision_aspect_ratio", "vision_feature_layer", "vision_feature_select_strategy", "num_heads"),
    *("default_theta", "default_rope_type", "ignore_keys_at_rope_validation", "num_labels"),
}
"""What the library's own code reads of a config beside keys of config.json."""


BESIDE_FIELDS = {
    "gemma3_text": ("rope_local_base_freq", "sliding_window_pattern"),
    "phi3": ("partial_rotary_factor",),
    "qwen3_moe": ("head_dim", "num_local_experts"),
}
"""Keys that a class takes without having a field of that name."""


def fields_of_class(name):
    """Of the library's configuration class of a model type: field name → dataclass field."""
    return {field.name: field for field in dataclasses.fields(CONFIG_MAPPING[name])}


@pytest.mark.parametrize("name", TABLES)
def test_a_family_s_table_has_every_key_of_the_library_s_class_with_its_default(name):
    table, known = TABLES[name], fields_of_class(name)
    own = {key for key in known if key not in BASE or known[key].default != BASE[key].default}
    assert own <= set(table)
    for key in set(table) & set(known):
        assert table[key].default == known[key].default, key
    extra = {key for key in set(table) - set(known) if not table[key].only}
    assert extra <= {*ROPE_KEYS, *BESIDE_FIELDS.get(name, ())}


def test_the_keys_of_every_config_are_those_of_the_library_s_base_class():
    assert set(BASE) <= set(keys.ANYWHERE)
    for key, field in BASE.items():
        assert keys.ANYWHERE[key].default == field.default, key


@pytest.mark.parametrize("name", TABLES)
def test_a_family_s_other_names_of_keys_are_the_library_s(name):
    if name in ("clip_vision_model",):
        assert not CONFIG_MAPPING[name].attribute_map
    else:
        row = next(row for row in FAMILIES if row.name == name)
        assert dict(row.aliases) == CONFIG_MAPPING[name].attribute_map


@pytest.mark.parametrize("name", TABLES)
def test_a_key_takes_no_type_that_the_library_refuses(name):
    from huggingface_hub.dataclasses import type_validator

    hints = {key: field.type for key, field in fields_of_class(name).items()}
    for key, entry in TABLES[name].items():
        if key not in hints or key in ("rope_parameters", "text_config", "vision_config", "layer_types"):
            continue
        for value in SAMPLES:
            if keys.is_a(value, entry.kind) and (not entry.only or value in entry.only):
                type_validator(key, value, hints[key])


def reads_of(run):
    """The names of attributes that `run` reads of the library's configs."""
    seen, kind = set(), PreTrainedConfig
    plain = kind.__getattribute__

    def noted(self, name):
        seen.add(name)
        return plain(self, name)

    kind.__getattribute__ = noted
    try:
        run()
    finally:
        kind.__getattribute__ = plain
    return seen


@pytest.mark.parametrize("name", TINY)
def test_whatever_the_library_reads_of_a_config_while_it_computes_is_in_the_tables(name):
    spec = spec_of(name)
    seen = reads_of(lambda: transformers_outputs.compute(spec))
    seen = {
        key for key in seen if not key.startswith("_") and not callable(getattr(PreTrainedConfig, key, 0))
    }
    table = next(row for row in FAMILIES if row.name == spec.model.family)
    known = {*keys.ANYWHERE, *table.keys, *table.aliases, *INTERNAL}
    known |= {ORIGINAL}  # `rope` reads it beside its settings
    if spec.model.family == "llava":
        known |= {*CLIP_KEYS, *TABLES["llama"]}
    assert seen <= known


def inline_rows():
    return [row["name"] for row in catalogue._table().values() if "config" in row]


@pytest.mark.parametrize("name", inline_rows())
def test_a_row_of_the_catalogue_is_to_the_library_what_its_spec_written_again_is(name):
    row = dict(catalogue._table()[name]["config"])
    written = json.loads(json.dumps(hf_config.config_of_spec(catalogue.resolve(name)[0])))
    theirs = AutoConfig.for_model(row.pop("model_type"), **row).to_dict()
    ours = AutoConfig.for_model(written.pop("model_type"), **written).to_dict()
    allowed = {"architectures", "dtype", "image_seq_length", "projection_dim"}
    assert theirs.pop("n_inner", None) in (None, ours.pop("n_inner", None))
    for part in ("text_config", "vision_config"):
        inner, again = theirs.pop(part, {}), ours.pop(part, {})
        assert {key for key in inner if inner[key] != again[key]} <= allowed
    assert {key for key in theirs if theirs[key] != ours.get(key)} <= allowed
