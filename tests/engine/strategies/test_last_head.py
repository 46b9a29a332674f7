"""The output matrix on a pipeline's last stage: what devices hold and send, and the proof of all logits."""

import pytest

from engine.domain.errors import PlanError
from engine.ops.sizes import weight_bytes
from engine.runs.predict import prepare, simulate
from engine.strategies.shared.demand import weights_bytes
from engine.strategies.shared.last_head import HEAD
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, spec_of, star
from tests.support.split_logits import prove


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
    prove(last(model, requests=2, pattern=pattern))


def test_an_encoder_and_a_pipeline_of_the_source_alone_keep_the_head_where_it_is():
    assert plan_of(last(BERT)).layout.head is None
    assert plan_of(last(LLAMA, devices=1)).layout.head is None


def with_memory(bytes_of_d1, **params):
    """By hand one layer on d0, two on d1 and none on d2, which could hold the output matrix."""
    cluster = star([1e10] * 3)
    devices = [device.model_copy() for device in cluster.devices]
    devices[1] = devices[1].model_copy(update={"memory_bytes": float(bytes_of_d1)})
    cluster = cluster.model_copy(update={"devices": tuple(devices)})
    shares = [{"device": "d0", "layers": 1}, {"device": "d1", "layers": 2}]
    return plan_of(spec_of("gpipe", LLAMA, cluster, plan={"devices": shares}, **params))


def test_a_last_device_without_room_for_the_output_matrix_is_refused():
    layers_bytes = weights_bytes(with_memory(4e8), LLAMA, 1)
    least = next(
        size for size in range(layers_bytes, 2 * layers_bytes, 64) if fits(size)
    )  # its layers, their cache and the largest operation
    assert not fits(least, head="last")
    with pytest.raises(PlanError, match="d1 needs"):
        with_memory(least, head="last")
    assert with_memory(least + weight_bytes(LLAMA, HEAD), head="last").layout.head == 1


def fits(bytes_of_d1, **params):
    try:
        with_memory(bytes_of_d1, **params)
    except PlanError:
        return False
    return True
