"""The reference: computed apart, once, from the same weights, and again when anything changes."""

import re

import pytest
import torch

from engine.domain.cache_directory import prune
from engine.domain.workload import Workload
from engine.models.inputs import prompts
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from tests.support.one_device import spec_of


@pytest.fixture
def compute_apart(tmp_path, in_a_copy):
    """`compute_apart(spec)`: the sentence of the error, or ""; `tmp_path` is the cache. The process computes
    those of other tests, too.
    """

    def compute(spec):
        (tmp_path / "spec.json").write_text(spec.model_dump_json())
        in_a_copy("one_reference", tmp_path / "spec.json", tmp_path, tmp_path / "said")
        return (tmp_path / "said").read_text()

    return compute


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """`kept(spec)`: its reference, which is in the cache."""
    monkeypatch.setattr(transformers_outputs, "run_apart", lambda *_: pytest.fail("computed again"))
    return lambda spec: transformers_outputs.load_or_compute(spec, tmp_path)


def test_the_reference_of_another_process_is_that_of_this_one(compute_apart, kept):
    spec = spec_of("tiny-llama")
    assert compute_apart(spec) == ""
    apart = kept(spec)
    here = transformers_outputs.compute(spec)
    assert apart.tensors().keys() == {"logits.0", "logits.1"}
    for name, tensor in apart.tensors().items():
        torch.testing.assert_close(tensor, here[name], rtol=1e-5, atol=1e-5)
    assert [list(tokens) for tokens in apart.tokens] == [here[f"tokens.{i}"].tolist() for i in range(2)]


def test_an_encoder_s_reference_is_its_hidden_states(compute_apart, kept):
    spec = spec_of("tiny-bert")
    assert compute_apart(spec) == ""
    found = kept(spec)
    assert found.tokens == () and found.logits == ()
    assert [tuple(x.shape) for x in found.hidden] == [(13, 32), (13, 32)]
    assert not torch.equal(*found.hidden)


def test_a_reference_is_computed_once(compute_apart, kept):
    spec = spec_of("tiny-gpt2")
    assert compute_apart(spec) == ""
    assert kept(spec.model_copy(update={"strategy": "voltage", "name": "x"})).tokens == kept(spec).tokens


def changed(spec, **update):
    return spec.model_copy(update=update)


def test_what_decides_the_numbers_decides_the_cached_file():
    spec = spec_of("tiny-gpt2")
    longer = Workload(prompt_tokens=13, new_tokens=7, requests=2)
    other = [
        spec,
        changed(spec, seed=12),
        changed(spec, workload=longer),
        spec_of("tiny-llama"),
        changed(spec, model=spec.model.model_copy(update={"norm_eps": 1e-3})),
        spec_of("demo-lm"),
    ]
    assert len({transformers_outputs._content_hash(each) for each in other}) == len(other)


def test_rewritten_weights_are_not_answered_from_the_cache(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-gpt2")).save_pretrained(tmp_path)
    spec = spec_of("tiny-gpt2")
    weights = spec.weights.model_copy(update={"kind": "directory", "directory": str(tmp_path)})
    before = transformers_outputs._content_hash(changed(spec, weights=weights))
    module = transformers_outputs.library_model(changed(spec, seed=99))
    module.save_pretrained(tmp_path)
    assert transformers_outputs._content_hash(changed(spec, weights=weights)) != before


def test_a_reference_that_fails_says_why_and_leaves_no_file(tmp_path, compute_apart):
    spec = spec_of("tiny-gpt2")
    weights = spec.weights.model_copy(update={"kind": "directory", "directory": str(tmp_path)})
    said = compute_apart(changed(spec, weights=weights))
    assert re.match("the reference of tiny-gpt2 could not be computed: .+", said)
    assert not (tmp_path / "references").exists()


def test_the_reference_tokenises_the_text_by_itself(monkeypatch):
    spec = spec_of("demo-lm", prompt="An expression is", new_tokens=1)
    right = requests_of(spec)[0].tokens
    monkeypatch.setattr(prompts, "encode_prompt", lambda *_: right[::-1])
    assert requests_of(spec)[0].tokens == right[::-1] != right
    found = transformers_outputs.reference_of(transformers_outputs.compute(spec))
    assert found.text_ids == right and len(found.tokens) == 1


def test_only_the_newest_references_are_kept(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.safetensors").write_bytes(b"")
    prune(tmp_path, "*.safetensors", 2)
    assert len(list(tmp_path.iterdir())) == 2


def test_bfloat16_references_keep_rotary_angles_in_full_precision():
    spec = spec_of("tiny-llama")
    half = changed(spec, model=spec.model.model_copy(update={"dtype": "bfloat16"}))
    module = transformers_outputs.library_model(half)
    assert module.model.layers[0].mlp.up_proj.weight.dtype == torch.bfloat16
    assert module.model.rotary_emb.inv_freq.dtype == torch.float32
    assert transformers_outputs.compute(half)["logits.0"].shape == (6, 101)


def test_a_prompt_asked_for_twice_is_computed_once(monkeypatch):
    spec = spec_of("tiny-gpt2", prompt="again", new_tokens=2, requests=3)
    seen = []
    answer = transformers_outputs._answer
    monkeypatch.setattr(
        transformers_outputs, "_answer", lambda *given: seen.append(given[2].tokens) or answer(*given)
    )
    found = transformers_outputs.compute(spec)
    assert seen == [requests_of(spec)[0].tokens]
    assert torch.equal(found["logits.0"], found["logits.2"])
