"""gpt-oss with experts in MXFP4, as it is published: read here as `transformers` restores it."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from engine.domain.errors import SpecError
from engine.domain.model import in_bits
from engine.domain.plan import Slice
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.families.hf_config import config_of_spec, spec_of_config
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.models.weights.store import WeightStore, load
from engine.ops.layout import whole_model
from tests.support.one_device import LAPTOP, generate, relative_error, spec_of

CONFIG = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "head_dim": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 53,
    "max_position_embeddings": 64,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
    "sliding_window": 4,
    "pad_token_id": 0,
}
PACKED = {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A directory as the published ones are, with random blocks, and what the library makes of them."""
    folder = tmp_path_factory.mktemp("gpt-oss")
    model = spec_of_config("gpt-oss", CONFIG, "here")
    spec = spec_of("tiny-gpt2").model_copy(update={"model": model, "workload": Workload(prompt_tokens=3)})
    transformers_outputs.library_model(spec).save_pretrained(folder)
    tensors, restored = load_file(folder / "model.safetensors"), {}
    random = torch.Generator().manual_seed(5)
    for name in [name for name in tensors if name.endswith("_proj") and "experts" in name]:
        experts, inputs, outputs = tensors.pop(name).shape
        shape = (experts, outputs, inputs // 32)
        blocks = torch.randint(0, 256, (*shape, 16), generator=random, dtype=torch.uint8)
        scales = torch.randint(119, 124, shape, generator=random, dtype=torch.uint8)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        restored[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config_of_spec(model) | PACKED))
    return folder, restored


def test_experts_in_mxfp4_are_those_that_transformers_restores_whole_and_in_any_columns(packed):
    folder, restored = packed
    model, weights = catalogue.resolve(str(folder))
    for start, stop in ((0, 96), (0, 1), (31, 33), (40, 95), (64, 96), (7, 7)):
        piece = Slice(layer=1, part="ffn", axis="columns", start=start, stop=stop)
        got = load(model, weights, piece, 0)
        gate_up, down = (restored[f"model.layers.1.mlp.experts.{name}_proj"] for name in ("gate_up", "down"))
        for expert in range(5):
            gate_key, up_key, down_key = (
                next(key for key in got if f"{expert}." in key and kind in key and key.endswith("weight"))
                for kind in ("gate", "up", "down")
            )
            assert torch.equal(got[gate_key], gate_up[expert][:, 0::2].T[start:stop])
            assert torch.equal(got[up_key], gate_up[expert][:, 1::2].T[start:stop])
            assert torch.equal(got[down_key], down[expert].T[:, start:stop])


@pytest.mark.parametrize(("kind", "bits"), [(None, None), (None, 8), ("random", None)])
def test_a_model_with_experts_in_mxfp4_gives_the_logits_of_transformers(packed, kind, bits):
    model, weights = catalogue.resolve(str(packed[0]), kind)
    model = in_bits(model, bits)
    spec = RunSpec(
        cluster=LAPTOP,
        model=model,
        weights=weights,
        workload=Workload(prompt_tokens=11, new_tokens=4),
        strategy="single",
    )
    store = WeightStore(model, weights, 0)
    for piece in whole_model(model):
        store.load(piece)
    theirs = transformers_outputs.compute(spec)["logits.0"]
    assert relative_error(generate(store, requests_of(spec)[0].tokens, 4), theirs) < 1e-5


def test_a_directory_without_the_scales_of_its_blocks_is_refused(packed, tmp_path):
    folder, _ = packed
    tensors = load_file(folder / "model.safetensors")
    cut = {
        name: tensor
        for name, tensor in tensors.items()
        if not name.endswith("1.mlp.experts.down_proj_scales")
    }
    save_file(cut, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(SpecError, match=r"has no tensor model\.layers\.1\.mlp\.experts\.down_proj_scales"):
        catalogue.resolve(str(tmp_path))
