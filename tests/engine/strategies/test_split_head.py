"""The head cut by the vocabulary: what devices hold and send, and that the proof keeps all logits."""

import pytest
import torch

from engine.ops.head_columns import Best, Choose
from engine.ops.sizes import weight_bytes
from engine.ops.torch_kernels import dispatch
from engine.reports.verify import with_whole_logits
from engine.strategies.shared.demand import weights_bytes
from tests.support.small_cases import GPT2, LLAMA, plan_of, spec_of, star
from tests.support.split_logits import prove

TIED = LLAMA.model_copy(update={"tied_head": True, "name": "tied"})


def split(model, devices=3, **more):
    return spec_of("megatron", model, star([1e10] * devices), head="columns", **more)


def parts_of_head(plan):
    pieces = [(item.device, item.slice) for item in plan.holdings if item.slice.part == "lm_head"]
    return [(device, piece.start, piece.stop) for device, piece in pieces]


def test_every_device_holds_its_rows_of_the_output_matrix():
    plan = plan_of(split(LLAMA))
    bounds = plan.layout.vocabulary
    assert bounds[0] == 0 and bounds[-1] == LLAMA.vocab_size
    assert parts_of_head(plan) == [(i, bounds[i], bounds[i + 1]) for i in range(3)]
    whole = plan_of(spec_of("megatron", LLAMA, star([1e10] * 3)))
    assert whole.layout.vocabulary is None
    saved = weights_bytes(whole, LLAMA, 0) - weights_bytes(plan, LLAMA, 0)
    assert saved == (LLAMA.vocab_size - bounds[1]) * LLAMA.hidden_size * LLAMA.element_bytes


def test_a_source_with_a_tied_table_holds_no_rows_twice():
    plan = plan_of(split(TIED))
    pieces = plan.held_by(0)
    rows = plan.layout.vocabulary[1] * TIED.hidden_size * TIED.element_bytes
    assert weights_bytes(plan, TIED, 0) == sum(weight_bytes(TIED, piece) for piece in pieces) - rows


@pytest.mark.parametrize("model", [GPT2, LLAMA, TIED], ids=lambda model: model.name)
@pytest.mark.parametrize("pattern", ["sporadic", "bursty"])
def test_tokens_and_all_logits_are_those_of_transformers(model, pattern):
    prove(split(model, requests=2, pattern=pattern))


def test_of_equal_logits_the_lowest_id_is_chosen():
    logits = torch.tensor([[1.0, 5.0, 5.0], [2.0, 0.0, 1.0]])
    low = dispatch.run(Best(0), LLAMA, None, {}, (logits,))
    assert low.tolist() == [[5.0, 1.0], [2.0, 0.0]]
    high = dispatch.run(Best(3), LLAMA, None, {}, (logits.flip(1),))
    assert high.tolist() == [[5.0, 3.0], [2.0, 5.0]]
    assert dispatch.run(Choose(), LLAMA, None, {}, (low, high)).tolist() == [1, 0]


def test_pieces_are_joined_only_where_they_are_complete_and_agree_with_the_token():
    def pieces(*rows):
        cut = {"piece.0.0.0": torch.tensor(rows[:2]), "piece.0.0.2": torch.tensor(rows[2:])}
        return {"tokens.0": torch.tensor([2])} | cut

    joined = with_whole_logits(pieces(0.0, 1.0, 3.0, 2.0), 4, [None])
    assert joined.keys() == {"logits.0"} and joined["logits.0"].tolist() == [[0.0, 1.0, 3.0, 2.0]]
    assert with_whole_logits(pieces(9.0, 1.0, 3.0, 2.0), 4, [None]).keys() == {"tokens.0"}
    assert with_whole_logits(pieces(0.0, 1.0, 3.0, 2.0), 5, [None]).keys() == {"tokens.0"}
    lost = {name: tensor for name, tensor in pieces(0.0, 1.0, 3.0, 2.0).items() if name != "piece.0.0.2"}
    assert with_whole_logits(lost, 4, [None]).keys() == {"tokens.0"}
