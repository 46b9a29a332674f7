"""In bfloat16 a run may choose another token at a near-tie; a mistake is still called wrong.

The library's module with a planted mistake stands for a run that is wrong, and the methods' own runs, in the
calculated world, for runs that are right.
"""

import pytest
import torch

from bench.fuzz.check import outputs_of
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.reference import teacher_forcing, transformers_outputs
from engine.models.reference.transformers_outputs import Reference
from engine.reports.rounding import measure_rounding
from engine.reports.verify import judge
from engine.runs.predict import prepare
from tests.support.small_cases import GPT2, star

HALF = GPT2.model_copy(update={"dtype": "bfloat16"})


def spec_of(name, strategy="single", dtype="bfloat16", devices=1, **workload):
    model = catalogue.resolve(name, "random")[0].model_copy(update={"dtype": dtype})
    sizes = {"prompt_tokens": 9, "new_tokens": 6 if model.has_head else 0, "requests": 2} | workload
    return RunSpec(
        cluster=star((1e9, 3e9, 2e9, 4e9)[:devices]),
        model=model,
        workload=Workload(**sizes),
        strategy=strategy,
        seed=3,
    )


def verdict(spec, got):
    reference = transformers_outputs.reference_of(transformers_outputs.compute(spec))
    return judge(spec, reference, got, False, lambda *asked: teacher_forcing.compute(spec, *asked))


def planted(monkeypatch, spec, plant):
    """The outputs of the library's own generation after `plant` has changed its state."""
    own = transformers_outputs.library_model

    def changed(spec):
        model = own(spec)
        plant(model.state_dict())
        return model

    with monkeypatch.context() as patch:
        patch.setattr(transformers_outputs, "library_model", changed)
        made = transformers_outputs.compute(spec)
    return {name: x for name, x in made.items() if not name.startswith("tokens.")}


@pytest.mark.parametrize("strategy", ["gpipe", "megatron", "galaxy", "mcu"])
@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama", "tiny-bert"])
def test_a_right_run_in_bfloat16_is_correct(name, strategy):
    spec = spec_of(name, strategy, devices=4)
    found = verdict(spec, outputs_of(prepare(spec)))
    assert found.ok is True, found.why
    assert 0.5 < found.error_over_rounding < 2
    assert found.rounding_error > 0


@pytest.mark.parametrize(
    ("name", "weights", "columns"),
    [
        ("tiny-gpt2", "transformer.h.1.attn.c_proj.weight", (slice(0, 8),)),
        ("tiny-llama", "model.layers.0.self_attn.o_proj.weight", (slice(None), slice(0, 8))),
        ("tiny-bert", "encoder.layer.0.attention.output.dense.weight", (slice(None), slice(24, 32))),
    ],
)
def test_a_run_that_drops_a_head_is_wrong_in_bfloat16(monkeypatch, name, weights, columns):
    spec = spec_of(name)
    found = verdict(spec, planted(monkeypatch, spec, lambda state: state[weights][columns].zero_()))
    assert found.ok is False
    assert found.error_over_rounding > 7


@pytest.mark.parametrize(
    ("name", "bias"),
    [
        ("tiny-gpt2", "transformer.h.0.attn.c_attn.bias"),
        ("tiny-opt", "model.decoder.layers.0.self_attn.v_proj.bias"),
        ("tiny-bert", "encoder.layer.0.output.dense.bias"),
    ],
)
def test_a_run_without_a_bias_is_wrong_in_bfloat16(monkeypatch, name, bias):
    """Also where every token is the reference's, as with this OPT."""
    spec = spec_of(name)
    found = verdict(spec, planted(monkeypatch, spec, lambda state: state[bias].zero_()))
    assert found.ok is False
    assert "times the rounding error of bfloat16" in found.why


ROW = [0.0, 4.0, 3.9, -4.0]


def near_tie(run, library, wide):
    """A run of one token, whose logits are those given; what follows its token is given for the library."""
    spec = RunSpec(cluster=star((1e9,)), model=HALF, strategy="single", workload=WORKLOAD, seed=3)
    own, exact = torch.tensor([library], dtype=torch.bfloat16), torch.tensor([wide])
    reference = Reference(((int(own[0].argmax()),),), (own,), ())
    outputs = {"own": [own], "precise": [exact]}
    got = {"logits.0": torch.tensor([run], dtype=torch.bfloat16)}
    return judge(spec, reference, got, False, lambda tokens, numbers: outputs[numbers])


WORKLOAD = Workload(prompt_tokens=4, new_tokens=1)


def test_another_token_at_a_near_tie_is_no_error_and_said():
    """The library is off by up to 0.0125, and its token leads by 0.01 in wide numbers."""
    found = near_tie([0.0, 3.96875, 3.984375, -4.0], [0.0, 4.0, 3.984375, -4.0], [0.01, 3.99, 3.98, -4.0125])
    assert (found.ok, found.token_identical, found.flipped_tokens) == (True, False, 1)
    assert found.rounding_error == pytest.approx(0.0125, rel=1e-3)
    assert found.why.startswith("1 token differs at a near-tie: the reference's token leads by at most 0.01 ")


def test_another_token_where_the_reference_leads_clearly_is_wrong():
    found = near_tie([0.0, 3.9, 3.984375, -4.0], [0.0, 4.0, 3.89, -4.0], [0.01, 3.99, 3.88, -4.0125])
    assert (found.ok, found.flipped_tokens) == (False, 1)
    assert (
        "the tokens differ from the reference's, and the reference's token leads by at most 0.11" in found.why
    )


def test_one_wrong_row_among_many_is_no_rounding():
    torch.manual_seed(0)
    wide = torch.randn(40, 64)
    library, run = wide + 1e-3 * torch.randn(40, 64), wide + 1e-3 * torch.randn(40, 64)
    none = [[]]
    assert measure_rounding([run], [library], [wide], none, [None]).is_rounding
    run[17] += 0.05 * torch.randn(64)
    found = measure_rounding([run], [library], [wide], none, [None])
    assert found.typical < 1.2
    assert not found.is_rounding


def test_the_error_is_the_geometric_mean_over_rows():
    """Rows whose errors are 2 and 8 times the library's have 4 times in the geometric mean."""
    wide = torch.zeros(2, 4)
    library = wide + torch.tensor([[1e-2], [1e-3]])
    found = measure_rounding([wide + torch.tensor([[2e-2], [8e-3]])], [library], [wide], [[]], [None])
    assert found.typical == pytest.approx(4)
    assert found.worst == pytest.approx(2)
    assert found.error_max == pytest.approx(1e-2)
    assert found.limit == pytest.approx(2 * (1 + 1.5 / 2))


def test_an_image_token_that_a_run_emits_is_text_to_the_reference():
    """The id that stands for a picture in a prompt may be emitted, and has no pixels then."""
    spec = spec_of("tiny-llava", dtype="float32", prompt_tokens=3, new_tokens=3, requests=1)
    assert spec.model.vision.tower.image_token == 100
    (logits,) = teacher_forcing.compute(spec, [[100, 5, 7]])
    (other,) = teacher_forcing.compute(spec, [[5, 5, 7]])
    assert logits.shape == (3, spec.model.vocab_size)
    assert torch.allclose(logits[0], other[0], atol=1e-5)
    assert not torch.allclose(logits[1], other[1], atol=1e-3)


def test_what_other_whole_numbers_change_counts_as_rounding_beside_the_librarys_own() -> None:
    """A library that happens to round as the wide one does would make any other right run wrong."""
    wide = [torch.tensor([[1.0, 2.0, 3.0]])]
    ours, shaken = [wide[0] + 0.01], [wide, [wide[0] - 0.01]]
    alone = measure_rounding(ours, wide, wide, [[]], [None])
    beside = measure_rounding(ours, wide, wide, [[]], [None], shaken)
    assert not alone.is_rounding and beside.is_rounding
    assert beside.error_max == pytest.approx(0.01, rel=1e-3)
    assert not measure_rounding([wide[0] + 0.1], wide, wide, [[]], [None], shaken).is_rounding
