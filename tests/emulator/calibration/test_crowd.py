"""The share of a message's costs that is work, found from a run of more devices than cores."""

import pytest

from emulator.calibration.crowd import (
    crowd_spec,
    message_s,
    token_s,
    with_message_work,
)
from emulator.calibration.runtime import Run
from engine.domain.host_times import HostProfile, MeasuredRow, RuntimeCosts
from engine.domain.trace import Mark, Span
from engine.runs.native import predict_native
from engine.runs.predict import prepare

RATE_BIT_PER_S = 1e9
COSTS = RuntimeCosts(send_s=2e-4, receive_s=3e-4, slowdown=(1.0, 1.0, 1.5, 2.0))


def profile(**costs):
    return HostProfile(
        host="made",
        products=(MeasuredRow(rows=1, s_per_flop=1e-10),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
        runtime=COSTS.model_copy(update=costs),
    )


def crowded_s(share):
    """Seconds per token as predicted, where that share of a message's costs is work."""
    host = profile(message_work_frac=share)
    return token_s(predict_native(prepare(crowd_spec(RATE_BIT_PER_S)), host).trace)


def test_the_share_is_the_one_with_which_a_prediction_takes_as_long_as_the_run():
    found = with_message_work(profile(), RATE_BIT_PER_S, crowded_s(0.375))
    assert found.runtime.message_work_frac == pytest.approx(0.375, abs=1 / 64)
    assert crowded_s(0.375) > 1.1 * crowded_s(0.0)  # else nothing could be found


def test_the_first_request_does_not_count():
    marks = [
        Mark(time_s, "token_emitted", "d0", {"request": request})
        for request, times in ((0, (0.0, 9.0)), (1, (10.0, 11.0, 13.0, 14.0)))
        for time_s in times
    ]
    assert token_s(marks) == 1.0


def test_a_message_takes_from_its_sending_to_the_operation_after_it_without_its_link():
    # the link's bucket lets 1,000 bytes through at once; larger messages do not count
    spans = [
        Span("d1", "recv", "m", -1, 1.0, 1.0002, 1000),
        Span("d1", "compute", "block", 0, 1.00025, 1.1, 0),
        Span("d1", "recv", "m", -1, 2.0, 2.5, 50_000),
    ]
    assert message_s(Run(None, spans), RATE_BIT_PER_S) == pytest.approx(250e-6)


def test_a_device_that_wakes_up_is_one_whose_host_has_fewer_cores():
    costs = RuntimeCosts(wakeup_s=2e-4, cores=2)
    assert [costs.wakeup_of(workers) for workers in (1, 2, 3)] == [0.0, 0.0, 2e-4]
    assert RuntimeCosts(wakeup_s=2e-4).wakeup_of(9) == 0.0, "the cores are not known"
