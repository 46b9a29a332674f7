"""What a strategy's numbers are worth on held-out text, measured against transformers itself."""

import pytest
import torch
from transformers import GPT2LMHeadModel

from bench.strategies.score import held_out_windows, logits_of, score
from engine.domain.spec import RunSpec
from engine.models import catalogue
from topologies.files import load

PROMPT, CONTINUATION, COUNT = 24, 6, 3


def spec_of(strategy, **params):
    model, weights = catalogue.resolve("demo-lm", None)
    return RunSpec(cluster=load("lab-4"), model=model, weights=weights, strategy=strategy, params=params)


@pytest.fixture(scope="module")
def windows():
    return held_out_windows(spec_of("single"), COUNT, PROMPT, CONTINUATION)


@pytest.fixture(scope="module")
def expected(windows):
    """transformers' logits at the continuations, all tokens in one pass."""
    torch.set_num_threads(1)
    model = GPT2LMHeadModel.from_pretrained(spec_of("single").weights.directory)
    ids = torch.tensor([window.prompt + window.continuation for window in windows])
    with torch.inference_mode():
        return model(ids).logits[:, PROMPT - 1 : -1]


@pytest.mark.parametrize("strategy", ["single", "megatron", "lime"])
def test_lossless_strategies_score_what_the_model_scores(strategy, windows, expected):
    own = logits_of(spec_of(strategy), windows)
    found = score(own, expected, windows)
    truth = torch.tensor([window.continuation for window in windows])
    loss = torch.nn.functional.cross_entropy(expected.flatten(0, 1), truth.flatten())
    assert found.perplexity == pytest.approx(float(loss.exp()), rel=1e-4)
    assert (found.top1_agreement, found.tokens) == (1.0, COUNT * CONTINUATION)
    assert found.kl_mean < 1e-6


def test_fewer_bits_and_fewer_heads_move_the_numbers_and_more_of_it_moves_them_more(windows, expected):
    kl = {
        name: score(logits_of(spec, windows), expected, windows).kl_mean
        for name, spec in {
            "8 bit": spec_of("edge_only", bits="8"),
            "4 bit": spec_of("edge_only", bits="4"),
            "some heads": spec_of("edgeformer", prune="paper", t_max_mode="ratio", t_max=0.8),
            "few heads": spec_of("edgeformer", prune="paper", t_max_mode="ratio", t_max=0.3),
        }.items()
    }
    assert 0 < kl["8 bit"] < kl["4 bit"]
    assert 0 < kl["some heads"] < kl["few heads"]
