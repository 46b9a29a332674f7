"""What makes a run correct: the reference's tokens, and its numbers to a small relative error.

The reference is made up here; `test_lossy_runs.py` has what transformers really says.
"""

import re

import pytest
import torch
from safetensors.torch import save_file

from engine.domain.model import in_bits, in_int8
from engine.domain.report import RoundedWeights
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models.reference.transformers_outputs import Reference
from engine.reports import verify
from tests.support.small_cases import BERT, GPT2, star

# two requests, three tokens each, a vocabulary of four: the largest number of all is 8, the likeliest tokens
# are 3, 0, 1 and 2, 2, 0
LOGITS = (
    torch.tensor([[0.0, 1.0, 2.0, 8.0], [4.0, 1.0, 0.0, 2.0], [1.0, 3.0, 0.0, 2.0]]),
    torch.tensor([[1.0, 1.0, 5.0, 2.0], [0.0, 1.0, 4.0, 2.0], [8.0, 1.0, 0.0, 2.0]]),
)
TOKENS = ((3, 0, 1), (2, 2, 0))


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Correctness of a run with the tensors that are given, against the reference that is given."""

    def of(got, reference=None, new_tokens=3, own=LOGITS, precise=LOGITS):
        kept = reference or Reference(TOKENS, own, ())
        wide = kept._replace(logits=precise if kept.logits else (), hidden=precise if kept.hidden else ())
        monkeypatch.setattr(
            verify,
            "reference_after",
            lambda spec, tokens, numbers="own", said=None: kept if numbers == "own" else wide,
        )
        model = GPT2 if new_tokens else BERT
        workload = Workload(prompt_tokens=4, new_tokens=new_tokens, requests=len(kept.tensors()))
        spec = RunSpec(cluster=star((1e9,)), model=model, strategy="single", workload=workload)
        save_file(got, tmp_path / "outputs.safetensors")
        return verify.compare_with_reference(spec, tmp_path / "outputs.safetensors")

    return of


def logits(add=0.0, request=0, token=0, entry=3):
    """The reference's logits, one of which is larger by `add`."""
    found = {f"logits.{index}": rows.clone() for index, rows in enumerate(LOGITS)}
    found[f"logits.{request}"][token, entry] += add
    return found


def test_the_references_own_numbers_are_correct(judge):
    found = judge(logits())
    assert (found.checked, found.ok, found.token_identical, found.why) == (True, True, True, "")
    assert (found.max_abs_error, found.max_rel_error) == (0.0, 0.0)


def test_the_relative_error_is_the_largest_difference_over_the_largest_number(judge):
    found = judge(logits(add=-0.0004))
    assert found.max_abs_error == pytest.approx(0.0004, rel=1e-2)
    assert found.max_rel_error == pytest.approx(0.0004 / 8, rel=1e-2)
    assert found.ok is True


@pytest.mark.parametrize(("rel_error", "ok"), [(0.9e-4, True), (1.2e-4, False), (1e-3, False), (5e-2, False)])
def test_the_same_tokens_are_not_enough_when_the_numbers_are_off(judge, rel_error, ok):
    found = judge(logits(add=8 * rel_error))
    assert found.token_identical is True
    assert found.ok is ok
    if not ok:
        assert "the largest relative error is" in found.why
        assert "expected at most 1e-04" in found.why


def test_an_error_in_any_request_and_token_counts(judge):
    assert judge(logits(add=0.1, request=1, token=2, entry=1)).ok is False


def test_a_request_that_lacks_a_token_is_wrong(judge):
    found = judge(logits() | {"logits.1": LOGITS[1][:2].clone()})
    assert (found.checked, found.ok, found.why) == (True, False, "request 1 has 2 tokens, expected 3")


def test_another_token_is_wrong_and_said_so(judge):
    found = judge(logits(add=2.0, request=1, token=1, entry=3) | {})
    assert found.token_identical is True  # 4.0 is as large as 2.0 + 2.0, and comes first
    found = judge(logits(add=2.5, request=1, token=1, entry=3))
    assert (found.ok, found.token_identical) == (False, False)
    assert found.why.startswith(verify.TOKENS_DIFFER)


@pytest.mark.parametrize(("rel_error", "ok"), [(0.0, True), (0.9e-4, True), (1.2e-4, False)])
def test_another_token_of_two_that_are_as_likely_is_right_if_the_numbers_are(judge, rel_error, ok):
    tied = tuple(rows.clone() for rows in LOGITS)
    tied[0][2, 3] = tied[0][2, 1] - 1e-6
    got = {f"logits.{index}": rows.clone() for index, rows in enumerate(tied)}
    got["logits.0"][2, 3] += 2e-6
    got["logits.1"][0, 1] += 8 * rel_error
    precise = tuple(rows + 1e-6 for rows in tied)
    found = judge(got, Reference(TOKENS, tied, ()), own=tied, precise=precise)
    assert (found.token_identical, found.ok) == (False, ok)
    assert ("the largest relative error is" in found.why) is not ok


def test_an_encoder_is_judged_by_its_numbers_alone(judge):
    hidden = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    reference = Reference((), (), (hidden,))
    right = judge({"hidden.0": hidden.clone()}, reference, new_tokens=0)
    assert (right.ok, right.token_identical) == (True, None)
    wrong = judge({"hidden.0": hidden + 0.001}, reference, new_tokens=0, precise=(hidden,))
    assert wrong.ok is False
    assert wrong.max_rel_error == pytest.approx(0.001 / 4, rel=1e-2)


@pytest.mark.parametrize(("times", "ok"), [(1.0, True), (12.0, False)])
def test_a_model_whose_own_rounding_is_larger_than_the_limit_is_judged_by_that(judge, times, ok):
    """A norm over three numbers that are nearly equal makes their last digits large."""
    hidden = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    off = torch.tensor([[0.002, 0.001], [-0.001, 0.002]])
    reference = Reference((), (), (hidden,))
    found = judge({"hidden.0": hidden - times * off}, reference, new_tokens=0, precise=(hidden + off,))
    assert found.max_rel_error == pytest.approx(times * 0.002 / 4, rel=1e-2)
    assert (found.ok, "times the rounding error of float32" in found.why) == (ok, not ok)


def test_where_only_token_ids_come_they_alone_are_compared(judge):
    same = {f"tokens.{index}": torch.tensor(ids) for index, ids in enumerate(TOKENS)}
    found = judge(same)
    assert (found.ok, found.token_identical, found.max_rel_error) == (True, True, None)
    assert "only tokens" in found.why
    other = same | {"tokens.1": torch.tensor([2, 2, 1])}
    found = judge(other)
    assert (found.ok, found.token_identical, found.flipped_tokens) == (False, False, 1)
    assert found.why.startswith(verify.TOKENS_DIFFER)
    assert "leads by at most 7 there" in found.why  # token 1 has 1, token 0 has 8


@pytest.mark.parametrize(
    "model", [in_bits(GPT2, 4), in_int8(in_bits(GPT2, 8))], ids=["weights", "whole numbers"]
)
def test_rounded_weights_are_beside_the_model_as_it_is_after_the_same_tokens(model):
    """The model as it is would have chosen token 1 for the second one, and one of its logits is 0.5 off."""
    whole = [LOGITS[0].clone(), LOGITS[1].clone()]
    whole[0][1] = torch.tensor([1.0, 4.0, 0.0, 2.0])
    whole[1][2, 0] = 7.5
    asked = []

    def outputs_of(spec, tokens):
        asked.append((spec.model, tokens))
        return whole

    spec = RunSpec(
        cluster=star((1e9,)),
        model=model,
        strategy="single",
        workload=Workload(prompt_tokens=4, new_tokens=3, requests=2),
    )
    found = verify.rounded_weights(spec, logits(), outputs_of)
    bits = {"bits": int(model.weight_bits), "activation_bits": model.activation_bits}
    assert found == RoundedWeights(**bits, tokens=6, differing_tokens=1, max_abs_error=3.0)
    assert asked == [(GPT2, [list(ids) for ids in TOKENS])]
    ids = {f"tokens.{index}": torch.tensor(row) for index, row in enumerate(TOKENS)}
    assert verify.rounded_weights(spec, ids, outputs_of) == found.model_copy(update={"max_abs_error": None})
    plain = spec.model_copy(update={"model": GPT2})
    assert verify.rounded_weights(plain, logits(), outputs_of) is None


IDS = {f"tokens.{index}": torch.tensor(ids) for index, ids in enumerate(TOKENS)}
NONE_OF_OURS = {
    "request 1 has 0 tokens, expected 3": {"logits.0": LOGITS[0]},
    "request 0 has 2 tokens, expected 3": logits() | {"logits.0": LOGITS[0][:2]},
    "does not have": IDS | {"tokens.1": torch.tensor([2, 2, 1 << 40])},
    "expected \\[3, 4\\]": logits() | {"logits.0": LOGITS[0][:, :3].contiguous()},
    "which no request has": logits() | {"piece.0.x.1": LOGITS[0][0]},
    "of shape \\[1, 4\\], which": logits() | {"piece.0.0.0": LOGITS[0][:1]},
    "tokens.0 is in torch.float32": IDS | {"tokens.0": torch.tensor([3.0, 0.0, 1.0])},
    "logits.0 is in torch.float8": logits() | {"logits.0": LOGITS[0].to(torch.float8_e4m3fn)},
    "logits.0 is in torch.complex64": logits() | {"logits.0": LOGITS[0].to(torch.complex64)},
    "logits.0 is in torch.int64": logits() | {"logits.0": LOGITS[0].to(torch.int64)},
}


@pytest.mark.parametrize("words", NONE_OF_OURS)
def test_outputs_that_no_run_of_ours_has_are_wrong_and_end_nothing(judge, words):
    """A board may have sent them."""
    found = judge(NONE_OF_OURS[words])
    assert found.ok is False
    assert re.search(words, found.why), found.why


def test_outputs_that_are_no_file_of_tensors_are_wrong(tmp_path):
    spec = RunSpec(
        cluster=star((1e9,)), model=GPT2, strategy="single", workload=Workload(prompt_tokens=4, new_tokens=3)
    )
    path = tmp_path / "outputs.safetensors"
    assert verify.compare_with_reference(spec, path).why == "the source has left no outputs"
    path.write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    (tmp_path / "pieces-1.safetensors").write_bytes(b"\xff" * 9)
    found = verify.compare_with_reference(spec, path)
    assert found.ok is False and found.why.startswith("the outputs in pieces-1.safetensors cannot be read")
