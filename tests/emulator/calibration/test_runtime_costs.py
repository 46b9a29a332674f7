"""What the runtime costs, from traces made by hand."""

import pytest

from emulator.calibration import runtime
from emulator.calibration.runtime import (
    Run,
    Sent,
    computing_costs,
    message_costs,
    messages,
    resumes,
    shares_a_core,
    with_messages,
)
from engine.domain.host_times import RuntimeCosts
from engine.domain.trace import Span
from engine.ops.cost import NATIVE_INLINE_FLOPS

GAP_S, TURN, TOKEN_S, HANDOVER_S = 30e-6, 0.05, 200e-6, 300e-6


def run(op_s, tokens=4, operations=5, handed_over=False):
    """Operations of `op_s` with the gaps that the runtime makes; the last of each token is a long one."""
    trace, now_s = [], 0.0
    for token in range(tokens):
        for number in range(operations):
            long = handed_over and number == operations - 1
            gap_s = GAP_S + TURN * op_s + (HANDOVER_S if long else 0.0)
            now_s += gap_s if number else GAP_S + TOKEN_S
            flops = NATIVE_INLINE_FLOPS if long else 1000
            trace.append(
                Span("d0", "compute", "block", 0, now_s, now_s + op_s, flops=flops, request=0, token=token)
            )
            now_s += op_s
    return Run(None, trace)


def test_gaps_become_dispatch_turns_tokens_and_hand_over():
    found = computing_costs([run(1e-4), run(5e-4), run(1e-3, handed_over=True)])
    assert found.dispatch_s == pytest.approx(GAP_S)
    assert found.turn_frac == pytest.approx(TURN)
    assert found.token_s == pytest.approx(TOKEN_S)
    assert found.handover_s == pytest.approx(HANDOVER_S)


def test_gaps_between_requests_and_between_devices_do_not_count():
    first, second = run(1e-4).trace, run(5e-4).trace
    for span in second:
        span.device, span.start_s, span.end_s = "d1", span.start_s + 9.0, span.end_s + 9.0
    later = run(1e-4).trace
    for span in later:
        span.request, span.start_s, span.end_s = 1, span.start_s + 5.0, span.end_s + 5.0
    together = computing_costs([Run(None, [*first, *later, *second])])
    assert together.token_s + together.dispatch_s == pytest.approx(TOKEN_S + GAP_S, rel=0.01)


def test_a_message_has_a_fixed_cost_and_one_per_byte_whatever_its_size():
    sent = [Sent(size, 300e-6 + 1.2e-9 * size) for size in (2_000, 2_000, 60_000, 900_000)]
    fixed_s, byte_s = message_costs(sent)
    assert (fixed_s, byte_s) == (pytest.approx(300e-6), pytest.approx(1.2e-9))


def test_one_slow_message_among_many_of_its_size_changes_nothing():
    sent = [Sent(2_000, 300e-6)] * 19 + [Sent(2_000, 9.0)] + [Sent(1_002_000, 1300e-6)] * 3
    fixed_s, byte_s = message_costs(sent)
    assert (fixed_s, byte_s) == (pytest.approx(298e-6), pytest.approx(1e-9))


def test_messages_of_one_size_have_no_cost_per_byte():
    assert message_costs([Sent(1_000, 2e-4)] * 3) == (pytest.approx(2e-4), 0.0)


def test_where_both_ends_share_a_core_messages_that_wait_for_it_do_not_count():
    """Two devices that compute for 200 µs and exchange messages of 64 µs: on one core, every second one waits
    until the other end has computed.
    """
    sent = [Sent(1_000, 64e-6), Sent(1_000, 264e-6), Sent(101_000, 164e-6), Sent(101_000, 364e-6)] * 20
    found = with_messages(RuntimeCosts(), sent, [[90e-6] * 9, [20e-6] * 20], shared=True)
    assert (found.send_s, found.byte_s) == (pytest.approx(31.5e-6), pytest.approx(0.5e-9))
    assert found.receive_s == pytest.approx(31.5e-6 + 20e-6)


@pytest.mark.parametrize(
    ("cores", "granted", "shared"), [({3}, 1.0, True), ({0, 1}, 0.5, True), ({0, 1}, 1.0, False)]
)
def test_two_processes_share_a_core_where_there_is_one_or_a_part_of_one(cores, granted, shared, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: cores)
    monkeypatch.setattr(runtime, "granted_frac", lambda: granted)
    assert shares_a_core() is shared


def test_the_time_on_a_link_is_no_cost_of_the_runtime():
    span = Span("d1", "recv", "x", 0, 1.0, 1.5, bytes=1_000_000, peer="d0")
    # at 104.558 Mbit/s of frames a bucket holds two frames and 120 us, 4,596 bytes, which pass at once
    at_once_s = 4596 * 1448 / 1514 * 8 / 1e8
    assert messages(Run(None, [span]), 1e8) == [Sent(1_000_000, pytest.approx(0.42 + at_once_s))]


def test_a_messages_costs_are_counted_at_both_ends():
    sent = [Sent(0, 2e-4), Sent(1_000_000, 2e-4 + 2e-3)]
    found = with_messages(RuntimeCosts(dispatch_s=1e-5), sent, [])
    assert (found.send_s, found.receive_s) == (pytest.approx(1e-4), pytest.approx(1e-4))
    assert (found.byte_s, found.dispatch_s) == (pytest.approx(1e-9), 1e-5)


def test_resuming_a_program_beyond_its_dispatch_is_the_receivers():
    found = with_messages(RuntimeCosts(dispatch_s=1e-5), [Sent(0, 2e-4)], [[1e-4] * 3, [3e-4] * 9, []])
    assert found.receive_s == pytest.approx(1e-4 + 2e-4 - 1e-5)


def test_a_message_resumes_the_operation_that_follows_it_on_its_device():
    def span(device, kind, start_s, end_s):
        return Span(device, kind, "x", 0, start_s, end_s)

    trace = [
        span("d1", "compute", 0.0, 1.0),
        span("d1", "recv", 0.5, 2.0),
        span("d1", "compute", 2.25, 3.0),
        span("d1", "recv", 2.5, 2.75),  # arrives while the device computes
        span("d1", "compute", 3.5, 4.0),
        span("d0", "recv", 0.0, 3.9),
    ]
    assert resumes(Run(None, trace)) == [0.25]
