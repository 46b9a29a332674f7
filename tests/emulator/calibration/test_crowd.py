"""The share of a message's costs that is work, found from a run of more devices than cores."""

import pytest

from emulator.calibration import crowd
from emulator.calibration.crowd import (
    crowd_spec,
    hop_s,
    pipeline_specs,
    predicted_token_s,
    token_s,
    with_message_work,
    with_wakeup,
)
from engine.domain.host_times import HostProfile, MeasuredRow, RuntimeCosts
from engine.domain.trace import Mark, Span
from engine.runs.native import predict_native
from engine.runs.predict import prepare

RATE_BIT_PER_S = 1e9
COSTS = RuntimeCosts(send_s=2e-4, receive_s=3e-4, slowdown=(1.0, 1.0, 1.5, 2.0))


@pytest.fixture(scope="module", autouse=True)
def every_share_is_predicted_once():
    """The same few of the same crowd, by each test of the share."""
    known = {}

    def predicted_s(spec, host):
        asked = spec.model_dump_json(), host.model_dump_json()
        if asked not in known:
            known[asked] = predicted_token_s(spec, host)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "predicted_token_s", predicted_s)
        yield


def profile(**costs):
    return HostProfile(
        host="made",
        products=(MeasuredRow(rows=1, s_per_flop=1e-10),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
        runtime=COSTS.model_copy(update=costs),
    )


def test_the_share_is_the_one_with_which_a_prediction_takes_as_long_as_the_run():
    spec = crowd_spec(RATE_BIT_PER_S)
    took_s = token_s(predict_native(prepare(spec), profile(message_work_frac=0.375)).trace)
    found = with_message_work(profile(), RATE_BIT_PER_S, took_s)
    assert found.runtime.message_work_frac == pytest.approx(0.375, abs=5e-3)
    none_s = crowd.predicted_token_s(spec, profile(message_work_frac=0.0))
    assert took_s > 1.1 * none_s  # else nothing could be found


def test_a_run_that_no_share_explains_gets_the_nearest():
    found = [with_message_work(profile(), RATE_BIT_PER_S, seconds) for seconds in (1e-4, 9.0)]
    assert [host.runtime.message_work_frac for host in found] == [0.0, 1.0]


@pytest.mark.parametrize("wakeup_s", [0.0, 1e-4, 4e-4])
def test_waking_up_is_found_from_the_hops_of_two_pipelines_whatever_their_operations_take(wakeup_s):
    """The second run meets the machine at a time when it takes half as long again."""
    host = profile(wakeup_s=wakeup_s, cores=2)
    slower = host.model_copy(update={"products": (MeasuredRow(rows=1, s_per_flop=1.5e-10),)})
    few, many = pipeline_specs(RATE_BIT_PER_S)
    few_s = hop_s(predict_native(prepare(few), host).trace)
    many_s = hop_s(predict_native(prepare(many), slower).trace)
    found = with_wakeup(profile(wakeup_s=5e-3, cores=2), few_s, many_s)
    assert found.runtime.wakeup_s == pytest.approx(wakeup_s, abs=1e-5)


def layers_after(message_s, *layers_s, device="d1", request=1):
    """A message and the layers that follow it at once, of the second token."""
    start_s = 10.0 * request + message_s
    spans = [Span(device, "recv", "hidden", -1, 10.0 * request, start_s, request=request, token=1)]
    for at, took_s in enumerate(layers_s):
        spans.append(
            Span(device, "compute", "block", at, start_s, start_s + took_s, request=request, token=1)
        )
        start_s += took_s
    return spans


def test_a_hop_is_its_message_and_what_the_first_layer_takes_longer():
    """0.5 ms, and 1.25 - 1 ms."""
    assert hop_s(layers_after(5e-4, 1.25e-3, 1e-3, 1.1e-3)) == pytest.approx(7.5e-4)


def test_hops_of_the_first_request_and_of_devices_with_one_layer_say_nothing():
    spans = layers_after(9.0, 9.0, 1e-3, request=0) + layers_after(8.0, 1e-3, device="d2")
    assert hop_s(spans + layers_after(5e-4, 1.25e-3, 1e-3)) == pytest.approx(7.5e-4)


def test_the_first_request_does_not_count():
    marks = [
        Mark(time_s, "token_emitted", "d0", {"request": request})
        for request, times in ((0, (0.0, 9.0)), (1, (10.0, 11.0, 13.0, 14.0)))
        for time_s in times
    ]
    assert token_s(marks) == 1.0


def test_a_device_that_wakes_up_is_one_whose_host_has_fewer_cores():
    costs = RuntimeCosts(wakeup_s=2e-4, cores=2)
    assert [costs.wakeup_of(workers) for workers in (1, 2, 3)] == [0.0, 0.0, 2e-4]
    assert RuntimeCosts(wakeup_s=2e-4).wakeup_of(9) == 0.0, "the cores are not known"
