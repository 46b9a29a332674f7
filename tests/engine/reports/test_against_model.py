"""Durations of operations against the device model, on hand-made traces."""

from dataclasses import replace

import pytest

from engine.domain.trace import Mark, Span
from engine.reports.against_model import compare_with_model, percentile_95


def op(device, start_s, took_s, name="ffn", flops=100, token=0):
    return Span(device, "compute", name, 0, start_s, start_s + took_s, bytes=10, flops=flops, token=token)


PREDICTED = [op("a", 0.0, 1.0), op("a", 1.0, 3.0, name="head", flops=300), op("b", 0.0, 2.0)]


def test_operations_as_long_as_predicted_have_no_error():
    found = compare_with_model(PREDICTED, PREDICTED)
    assert found[:5] == (3, 3, 0.0, 0.0, 0.0)


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


def test_of_two_changes_within_the_grace_any_speed_may_hold():
    run = [slowed(2.0, 3.0), slowed(2.05, 5.0), op("b", 2.08, 6.0)]
    assert compare_with_model(run, PREDICTED, change_grace_s=0.1).error_mean == pytest.approx(0.0)
    # a speed from after the start cannot hold
    run = [op("b", 1.95, 6.0), slowed(2.0, 3.0)]
    assert compare_with_model(run, PREDICTED, change_grace_s=0.1).error_mean == pytest.approx(4 / 2)


def test_operations_of_as_many_flops_but_other_bytes_are_not_the_same():
    other = replace(op("b", 0.0, 2.0), bytes=11)
    assert compare_with_model([other], PREDICTED).compared == 0


def test_a_slowed_prediction_gives_the_time_at_the_devices_own_speed():
    predicted = [slowed(0.0, 4.0), op("b", 1.0, 8.0)]
    assert compare_with_model([op("b", 0.0, 2.0)], predicted).error_mean == pytest.approx(0.0)


def frozen(device, since_s, until_s):
    return [Mark(since_s, "device_frozen", device), Mark(until_s, "device_joined", device)]


def test_the_time_in_which_a_device_was_frozen_is_not_counted():
    run = [*frozen("b", 1.5, 8.0), op("b", 0.0, 8.5)]  # 8.5 s, of which it was frozen for 6.5
    assert compare_with_model(run, PREDICTED).error_mean == pytest.approx(0.0)
    elsewhere = [*frozen("a", 1.5, 8.0), op("b", 0.0, 8.5)]
    assert compare_with_model(elsewhere, PREDICTED).error_mean == pytest.approx(6.5 / 2)
    earlier = [*frozen("b", 0.0, 0.5), op("b", 1.0, 2.0)]
    assert compare_with_model(earlier, PREDICTED).error_mean == pytest.approx(0.0)
    joined_only = [Mark(8.0, "device_joined", "b"), op("b", 0.0, 8.5)]
    assert compare_with_model(joined_only, PREDICTED).error_mean == pytest.approx(6.5 / 2)


FIVE = [op("a", float(index), 1.0) for index in range(5)]


def test_the_typical_error_is_that_of_half_of_the_computing_time():
    two_late = [op("a", 0.0, 9.0), op("a", 10.0, 9.0), *FIVE[2:]]
    assert compare_with_model(two_late, FIVE).typical == {("a", "prefill"): 0.0}
    three_late = [op("a", 10.0 * index, 1.5 if index < 3 else 1.0) for index in range(5)]
    assert compare_with_model(three_late, FIVE).typical == {("a", "prefill"): pytest.approx(0.5)}
    # one operation of 3 s weighs more than four of 0.5 s
    uneven = [op("a", 0.0, 3.0), *(op("a", 4.0 + index, 0.5, name="small") for index in range(4))]
    longer = [op("a", 0.0, 3.6), *uneven[1:]]
    assert compare_with_model(longer, uneven).typical == {("a", "prefill"): pytest.approx(0.2)}


def test_devices_and_phases_have_typical_errors_of_their_own():
    decode = [op("a", 10.0 + index, 1.0, token=index + 1) for index in range(5)]
    other = [op("b", float(index), 2.0) for index in range(5)]
    longer = [op("a", 10.0 + 2 * index, 1.2, token=index + 1) for index in range(5)]
    found = compare_with_model([*FIVE, *longer, *other], [*FIVE, *decode, *other]).typical
    assert found == {("a", "prefill"): 0.0, ("a", "decode"): pytest.approx(0.2), ("b", "prefill"): 0.0}


def test_four_operations_are_too_few_for_a_typical_error():
    assert compare_with_model([op("a", 10.0 * index, 1.5) for index in range(4)], FIVE).typical == {}


def test_operations_that_the_run_has_not_are_counted_by_device():
    predicted = [*FIVE, op("b", 0.0, 2.0), op("c", 0.0, 1.0)]
    found = compare_with_model([*FIVE[:4], op("c", 0.0, 1.0), op("c", 5.0, 1.0)], predicted)
    assert found.missing_frac == {"a": pytest.approx(1 / 5), "b": 1.0, "c": 0.0}


def test_operations_of_one_device_that_overlap_are_found():
    run = [op("a", 0.0, 1.0), op("a", 0.5, 1.0), op("b", 0.0, 2.0)]
    assert compare_with_model(run, PREDICTED).overlap_frac == pytest.approx(0.5 / 4)


def test_operations_of_different_devices_may_overlap():
    assert compare_with_model([op("a", 0.0, 1.0), op("b", 0.5, 2.0)], PREDICTED).overlap_frac == 0.0


def test_ninety_five_percent_of_the_values_are_at_or_below_the_percentile():
    assert percentile_95([float(value) for value in range(101)]) == pytest.approx(95.0)
    assert percentile_95([7.0]) == 7.0
    assert percentile_95([1.0, 2.0]) == pytest.approx(1.95)
    assert percentile_95([]) is None


def test_a_run_that_computed_nothing_has_no_overlap():
    assert compare_with_model([], PREDICTED)[:5] == (0, 0, None, None, 0.0)


def test_an_operation_that_takes_no_time_in_the_prediction_is_neither_counted_nor_compared():
    """The last one of an encoder on one device has no kernels."""
    predicted = [op("b", 0.0, 2.0), op("b", 2.0, 0.0, name="final", flops=0)]
    run = [op("b", 0.0, 2.0), op("b", 2.0, 0.1, name="final", flops=0)]
    found = compare_with_model(run, predicted)
    assert (found.operations, found.compared, found.error_mean) == (1, 1, 0.0)
