"""The output matrix on a pipeline's last stage: what devices hold and send, and the proof of all logits."""

import pytest

from engine.domain.errors import PlanError
from engine.fuzz.check import check, outputs_of
from engine.ops.sizes import weight_bytes
from engine.runs.predict import prepare, simulate
from engine.strategies.shared.demand import weights_bytes
from engine.strategies.shared.last_head import HEAD
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, spec_of, star


def last(model, devices=3, **more):
    return spec_of("gpipe", model, star([1e10] * devices), head="last", **more)


def test_the_last_stage_holds_the_output_matrix_in_place_of_the_source():
    plan, plain = plan_of(last(LLAMA)), plan_of(spec_of("gpipe", LLAMA, star([1e10] * 3)))
    at = plan.layout.stages[-1].device
    assert plan.layout.head == at != 0 and plain.layout.head is None
    assert [item.device for item in plan.holdings if item.slice == HEAD] == [at]
    assert [item.device for item in plan.work if item.slice == HEAD] == [at]
    assert weights_bytes(plan, LLAMA, at) - sum(
        weight_bytes(LLAMA, piece) for piece in plan.held_by(at) if piece != HEAD
    ) == weight_bytes(LLAMA, HEAD)


def test_the_source_gets_eight_bytes_per_token_in_place_of_a_row():
    for spec, size, tag in ((last(LLAMA), 8, "token"), (spec_of("gpipe", LLAMA, star([1e10] * 3)), 0, "L")):
        trace, _ = simulate(prepare(spec))
        back = [span for span in trace if getattr(span, "kind", "") == "recv" and span.device == "d0"]
        row_bytes = LLAMA.hidden_size * LLAMA.element_bytes
        assert back and {span.payload_bytes for span in back} == {size or row_bytes}
        assert all(span.name.startswith(tag) for span in back)


@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.name)
@pytest.mark.parametrize("pattern", ["sporadic", "bursty"])
def test_tokens_and_all_logits_are_those_of_transformers(model, pattern):
    spec = last(model, requests=2, pattern=pattern)
    verdict = check(spec)
    assert verdict.end == "equal", verdict.sentence
    assert verdict.correctness.max_rel_error is not None, "the logits were compared, not the tokens alone"
    got = outputs_of(prepare(spec))
    assert any(name.startswith("piece.") for name in got)
    assert not any(name.startswith("logits.") for name in got), "no logits reach the source"


def test_an_encoder_and_a_pipeline_of_the_source_alone_keep_the_head_where_it_is():
    assert plan_of(last(BERT)).layout.head is None
    assert plan_of(last(LLAMA, devices=1)).layout.head is None


def test_a_last_device_without_room_for_the_head_is_refused():
    cluster = star([1e10] * 2)
    layers = plan_of(spec_of("gpipe", LLAMA, cluster)).layout.stages[-1].num_layers
    spec = spec_of("gpipe", LLAMA, cluster, head="last")
    small = weights_bytes(plan_of(spec), LLAMA, 1) - weight_bytes(LLAMA, HEAD) // 2
    devices = (cluster.devices[0], cluster.devices[1].model_copy(update={"memory_bytes": float(small)}))
    tight = spec.model_copy(update={"cluster": cluster.model_copy(update={"devices": devices})})
    shares = [{"device": "d0", "layers": LLAMA.num_layers - layers}, {"device": "d1", "layers": layers}]
    with pytest.raises(PlanError, match="d1"):
        plan_of(tight.model_copy(update={"params": {"head": "last", "plan": {"devices": shares}}}))
