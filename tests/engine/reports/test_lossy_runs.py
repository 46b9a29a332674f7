"""A lossy run is compared with the logits of `transformers` after the run's own tokens."""

import pytest
import torch
from safetensors.torch import save_file

from engine.domain.cluster import ClusterSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.inputs.prompts import requests_of
from engine.models.reference import teacher_forcing, transformers_outputs
from engine.models.reference.transformers_outputs import Reference
from engine.reports import verify

CLUSTER = ClusterSpec(
    name="alone",
    source="d0",
    devices=[{"name": "d0", "flop_per_s": 1e10, "memory_bytes": 4e8, "memory_byte_per_s": 4e9}],
)
NEW_TOKENS = 4


def spec_of(name):
    model, weights = catalogue.resolve(name)
    return RunSpec(
        cluster=CLUSTER,
        model=model,
        weights=weights,
        strategy="edgeformer",
        seed=3,
        workload=Workload(prompt_tokens=9, new_tokens=NEW_TOKENS if model.causal else 0, requests=2),
    )


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Correctness of a lossy run with these outputs; the library computes in this process."""

    def read(spec):
        return transformers_outputs.reference_of(transformers_outputs.compute(spec))

    def reference_after(spec, tokens, numbers="own", said=None):
        rows = tuple(teacher_forcing.compute(spec, tokens, numbers))
        if not spec.workload.new_tokens:
            return Reference((), (), rows)
        return Reference(tuple(tuple(each.argmax(dim=-1).tolist()) for each in rows), rows, ())

    monkeypatch.setattr(verify, "reference_after", reference_after)

    def of(spec, change=lambda named: named, lossy=True):
        outputs = tmp_path / "outputs.safetensors"
        tensors = {name: x.clone() for name, x in read(spec).tensors().items()}
        save_file(change(tensors), outputs)
        return verify.compare_with_reference(spec, outputs, lossy)

    return of


def test_a_run_with_the_references_numbers_diverges_by_nothing(measure):
    found = measure(spec_of("tiny-gpt2"))
    assert found.checked
    assert found.lossy
    assert found.ok is None
    assert (found.token_identical, found.top1_agreement) == (True, 1)
    assert found.kl_mean == pytest.approx(0, abs=1e-6)
    assert found.max_rel_error < 1e-6  # token by token, and in one pass: the sums have other orders


def test_another_token_is_judged_by_what_the_reference_says_after_it(measure):
    spec = spec_of("tiny-gpt2")
    truth = {}

    def change(named):
        """Request 0 emits another second token, and goes on as the library would."""
        logits = named["logits.0"]
        other = int(logits[1].topk(2).indices[1])
        logits[1, other] += 100
        tokens = [int(logits[0].argmax()), other]
        prompt = requests_of(spec)[0].tokens
        model = transformers_outputs.library_model(spec)
        for index in (2, 3):
            with torch.inference_mode():
                logits[index] = model(torch.tensor([[*prompt, *tokens]])).logits[0, -1]
            tokens.append(int(logits[index].argmax()))
        truth["kl"] = torch.distributions.kl_divergence(
            torch.distributions.Categorical(logits=logits[1] - 100 * torch.eye(len(logits[1]))[other]),
            torch.distributions.Categorical(logits=logits[1]),
        )
        return named

    found = measure(spec, change)
    assert found.token_identical is False
    assert found.top1_agreement == pytest.approx(1 - 1 / (2 * NEW_TOKENS))
    assert found.kl_mean == pytest.approx(float(truth["kl"]) / (2 * NEW_TOKENS), rel=1e-3)
    assert found.max_abs_error == pytest.approx(100, rel=1e-4)
    assert found.ok is None


def test_the_same_outputs_of_a_lossless_strategy_are_wrong(measure):
    found = measure(spec_of("tiny-gpt2"), lambda named: {k: -x for k, x in named.items()}, lossy=False)
    assert found.ok is False
    assert not found.lossy
    assert found.kl_mean is None


def test_numbers_that_are_not_finite_are_wrong_however_lossy(measure):
    found = measure(spec_of("tiny-gpt2"), lambda named: named | {"logits.1": named["logits.1"] / 0})
    assert found.ok is False
    assert "not finite" in found.why


def test_an_encoder_has_an_error_and_no_tokens(measure):
    found = measure(spec_of("tiny-bert"), lambda named: {name: 2 * x for name, x in named.items()})
    assert found.ok is None
    assert found.max_rel_error == pytest.approx(1)
    assert (found.token_identical, found.kl_mean, found.top1_agreement) == (None, None, None)
