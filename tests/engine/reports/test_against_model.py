"""Durations of operations against the device model, on hand-made traces."""

import pytest

from engine.domain.trace import Mark, Span
from engine.reports.against_model import compare_with_model, percentile_95


def op(device, start_s, took_s, name="ffn", flops=100):
    return Span(device, "compute", name, 0, start_s, start_s + took_s, bytes=10, flops=flops)


PREDICTED = [op("a", 0.0, 1.0), op("a", 1.0, 3.0, name="head", flops=300), op("b", 0.0, 2.0)]


def test_operations_as_long_as_predicted_have_no_error():
    found = compare_with_model(PREDICTED, PREDICTED)
    assert found == (3, 3, 0.0, 0.0, 0.0)


def test_operations_half_as_long_again_have_an_error_of_one_half():
    run = [op("a", 0.0, 1.5), op("a", 1.5, 4.5, name="head", flops=300), op("b", 0.0, 3.0)]
    found = compare_with_model(run, PREDICTED)
    assert found.error_mean == pytest.approx(0.5)
    assert found.error_p95 == pytest.approx(0.5)


def test_the_mean_error_weighs_operations_by_their_time():
    run = [op("a", 0.0, 2.0), op("a", 2.0, 3.0, name="head", flops=300)]
    # one second more than the four that were expected, all of it in the shorter operation
    assert compare_with_model(run, PREDICTED).error_mean == pytest.approx(0.25)


def test_too_short_operations_are_errors_too():
    assert compare_with_model([op("b", 0.0, 1.0)], PREDICTED).error_mean == pytest.approx(0.5)


def test_times_are_compared_wherever_in_the_run_an_operation_began():
    assert compare_with_model([op("b", 100.0, 2.0)], PREDICTED).error_mean == pytest.approx(0.0)


@pytest.mark.parametrize("other", [op("c", 0.0, 9.0), op("a", 0.0, 9.0, flops=101), op("a", 0, 9, name="x")])
def test_an_operation_that_the_prediction_has_not_is_counted_but_not_compared(other):
    found = compare_with_model([other, op("b", 0.0, 2.0)], PREDICTED)
    assert (found.operations, found.compared, found.error_mean) == (2, 1, 0.0)


def test_without_anything_to_compare_there_is_no_error():
    found = compare_with_model([op("c", 0.0, 9.0)], PREDICTED)
    assert (found.compared, found.error_mean, found.error_p95) == (0, None, None)


def slowed(time_s, factor, device="b"):
    return Mark(time_s, "device_changed", device, {"factor": factor})


def test_a_slowed_device_is_expected_to_take_longer_from_then_on():
    run = [op("b", 0.0, 2.0), slowed(2.0, 3.0), op("b", 2.0, 6.0)]
    assert compare_with_model(run, PREDICTED).error_mean == pytest.approx(0.0)
    ignored = [op("b", 0.0, 2.0), slowed(2.0, 3.0), op("b", 2.0, 2.0)]
    assert compare_with_model(ignored, PREDICTED).error_mean == pytest.approx(4 / 8)


def test_the_prediction_may_have_been_slowed_at_another_time():
    predicted = [op("b", 0.0, 2.0), slowed(2.0, 3.0), op("b", 2.0, 6.0, name="late")]
    assert compare_with_model([op("b", 0.0, 2.0, name="late")], predicted).error_mean == pytest.approx(0.0)


def test_an_operation_just_after_a_change_may_still_have_its_old_time():
    run = [slowed(2.0, 3.0), op("b", 2.05, 2.0)]
    assert compare_with_model(run, PREDICTED, change_grace_s=0.1).error_mean == pytest.approx(0.0)
    assert compare_with_model(run, PREDICTED, change_grace_s=0.01).error_mean == pytest.approx(4 / 6)


def test_operations_of_one_device_that_overlap_are_found():
    run = [op("a", 0.0, 1.0), op("a", 0.5, 1.0), op("b", 0.0, 2.0)]
    assert compare_with_model(run, PREDICTED).overlap_frac == pytest.approx(0.5 / 4)


def test_operations_of_different_devices_may_overlap():
    assert compare_with_model([op("a", 0.0, 1.0), op("b", 0.5, 2.0)], PREDICTED).overlap_frac == 0.0


def test_ninety_five_percent_of_the_values_are_at_or_below_the_percentile():
    assert percentile_95([float(value) for value in range(101)]) == pytest.approx(95.0)
    assert percentile_95([7.0]) == 7.0
    assert percentile_95([]) is None


def test_a_run_that_computed_nothing_has_no_overlap():
    assert compare_with_model([], PREDICTED) == (0, 0, None, None, 0.0)
