"""Our layers, chained on one device, are those of `transformers`."""

import pytest
import torch

from engine.domain.plan import Slice
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from tests.support.one_device import (
    CAUSAL,
    TINY,
    encode,
    generate,
    hidden_states,
    layers,
    model_of,
    relative_error,
    spec_of,
    store_of,
)

TRAINED = ("minilm", "demo-lm")


@pytest.mark.parametrize("name", [*TINY, *TRAINED])
def test_hidden_states_or_greedy_logits_are_those_of_transformers(name):
    spec, store = spec_of(name), store_of(name)
    theirs = transformers_outputs.compute(spec)
    for request in requests_of(spec):
        if spec.workload.new_tokens:
            ours = generate(store, request.tokens, spec.workload.new_tokens)
            assert ours.argmax(dim=-1).tolist() == theirs[f"tokens.{request.index}"].tolist()
            expected = theirs[f"logits.{request.index}"]
        else:
            ours, expected = encode(store, request.tokens), theirs[f"hidden.{request.index}"]
        assert ours.shape == expected.shape
        assert relative_error(ours, expected) < 1e-5


@pytest.mark.parametrize("name", CAUSAL)
def test_all_hidden_states_of_a_causal_model_are_those_of_transformers(name):
    spec = spec_of(name, prompt_tokens=17, new_tokens=0)
    theirs = transformers_outputs.compute(spec)["hidden.0"]
    assert relative_error(encode(store_of(name), requests_of(spec)[0].tokens), theirs) < 1e-5


@pytest.mark.parametrize("name", [*CAUSAL, "demo-lm"])
def test_different_prompts_give_different_tokens_and_not_their_own_last_one(name):
    """Else token identity would prove nothing."""
    prompts = [request.tokens for request in requests_of(spec_of(name, prompt_tokens=13, requests=12))]
    first = [int(generate(store_of(name), prompt, 1).argmax()) for prompt in prompts]
    assert len(set(first)) > 4
    assert sum(token == prompt[-1] for token, prompt in zip(first, prompts, strict=True)) < 6


@pytest.mark.parametrize("name", [*CAUSAL, "demo-lm"])
def test_decoding_with_a_cache_equals_one_pass_over_all_rows(name):
    store = store_of(name)
    spec = spec_of(name, prompt_tokens=13, new_tokens=6)
    prompt = list(requests_of(spec)[0].tokens)
    logits = generate(store, prompt, 6)
    whole = prompt + logits.argmax(dim=-1).tolist()[:-1]
    table = store.get(Slice(layer=-1, part="lm_head"))["weight"]
    all_rows, cap = encode(store, whole) @ table.T, model_of(name).logit_softcap
    all_rows = all_rows / model_of(name).logits_scaling
    if cap is not None:
        all_rows = cap * torch.tanh(all_rows / cap)
    assert relative_error(logits, all_rows[len(prompt) - 1 :]) < 1e-5


@pytest.mark.parametrize("name", [*CAUSAL, "grouped"])
def test_a_prompt_in_pieces_fills_the_cache_as_one_prompt_does(name):
    store = store_of(name)
    x = hidden_states(store, rows=11)
    caches = {}
    pieces = [layers(store, x[:, a:b], caches) for a, b in ((0, 4), (4, 5), (5, 11))]
    assert relative_error(torch.cat(pieces, 1), layers(store, x, {})) < 1e-5


@pytest.mark.parametrize("name", [*TINY, "grouped"])
def test_a_batch_computes_each_of_its_sequences(name):
    store = store_of(name)
    x = hidden_states(store, batch=3)
    caches = {} if model_of(name).causal else None
    together = layers(store, x, caches)
    for index in range(3):
        alone = layers(store, x[index : index + 1], None if caches is None else {})
        assert relative_error(together[index], alone[0]) < 1e-5
