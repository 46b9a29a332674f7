"""The schedule of one resource, worked by hand. Times are wall seconds, but for those asked of the device."""

import pytest

from engine.worlds.real.pacing import MAX_DEBT_S, Pacer


def test_an_operation_is_due_after_its_virtual_time_times_the_dilation():
    assert Pacer(4.0).plan(10.0, 0.5) == (10.0, 12.0)


def test_operations_of_one_device_follow_each_other():
    pacer = Pacer(2.0)
    assert pacer.plan(1.0, 0.5) == (1.0, 2.0)
    assert pacer.plan(1.0, 0.25) == (2.0, 2.5)  # ready at 1.0, but the one before is due at 2.0
    assert pacer.plan(3.0, 0.25) == (3.0, 3.5)  # the device was idle from 2.5 to 3.0


def test_a_result_that_is_ready_in_time_ends_at_its_deadline():
    pacer = Pacer(1.0)
    start_s, deadline_s = pacer.plan(0.0, 0.1)
    assert pacer.settle(start_s, deadline_s, 0.0999, 0.01) == 0.1
    assert pacer.stats().late == 0


def test_a_small_debt_leaves_the_schedule_as_it_is():
    pacer = Pacer(1.0)
    start_s, deadline_s = pacer.plan(0.0, 0.01)
    assert pacer.settle(start_s, deadline_s, deadline_s + MAX_DEBT_S * 0.9, 0.01) == deadline_s
    assert pacer.plan(0.0, 0.01)[0] == deadline_s
    assert pacer.stats().late == 0


def test_a_large_debt_is_late_and_moves_the_schedule():
    pacer = Pacer(1.0)
    start_s, deadline_s = pacer.plan(0.0, 0.01)
    now_s = deadline_s + MAX_DEBT_S * 1.1
    assert pacer.settle(start_s, deadline_s, now_s, 0.01) == now_s
    assert pacer.plan(0.0, 0.01)[0] == now_s
    assert (pacer.stats().operations, pacer.stats().late) == (1, 1)


def test_what_was_due_while_the_device_was_frozen_is_due_when_it_goes_on():
    pacer = Pacer(1.0)
    start_s, deadline_s = pacer.plan(0.0, 0.1)
    pacer.resume(5.0)
    assert pacer.settle(start_s, deadline_s, 5.0 + MAX_DEBT_S * 0.9, 0.01) == 5.0
    assert pacer.stats().late == 0
    assert pacer.stats().errors == (pytest.approx(MAX_DEBT_S * 0.9 / 0.1),)
    start_s, deadline_s = pacer.plan(0.0, 0.1)
    assert start_s == 5.0  # what is due later stays due later
    assert pacer.settle(start_s, deadline_s, 5.0, 0.01) == pytest.approx(5.1)


def test_of_a_long_operation_one_twentieth_may_be_owed():
    for debt_s, late in ((0.049, 0), (0.051, 1)):
        pacer = Pacer(1.0)
        start_s, deadline_s = pacer.plan(0.0, 1.0)
        pacer.settle(start_s, deadline_s, deadline_s + debt_s, 0.5)
        assert pacer.stats().late == late


def test_a_batch_of_ten_milliseconds_gives_one_error_and_one_use():
    pacer = Pacer(1.0)
    for index in range(4):  # 4 ms each: a batch is full after three
        start_s, deadline_s = pacer.plan(0.0, 0.004)
        pacer.settle(start_s, deadline_s, deadline_s + (0.0006 if index == 2 else 0.0), 0.002)
    stats = pacer.stats()
    assert stats.errors == (pytest.approx(0.0006 / 0.012),)
    assert stats.used == (pytest.approx(0.006 / 0.012),)
    assert stats.target_s == pytest.approx(0.016)
    assert stats.host_s == pytest.approx(0.008)


def test_after_a_reset_nothing_that_was_planned_keeps_the_resource():
    pacer = Pacer(1.0)
    pacer.plan(0.0, 5.0)
    pacer.reset(2.0)
    assert pacer.plan(2.0, 1.0) == (2.0, 3.0)


def test_a_reset_does_not_give_time_away():
    pacer = Pacer(1.0)
    pacer.plan(0.0, 1.0)
    pacer.reset(2.0)
    assert pacer.plan(0.5, 1.0) == (1.0, 2.0)


def test_native_operations_end_when_they_end():
    pacer = Pacer(None)
    start_s, deadline_s = pacer.plan(1.0, 5.0)
    assert (start_s, deadline_s) == (1.0, 1.0)
    assert pacer.settle(start_s, deadline_s, 1.3, 0.3) == 1.3
    assert pacer.plan(1.1, 5.0)[0] == 1.3
    stats = pacer.stats()
    assert (stats.operations, stats.late, stats.errors) == (1, 0, ())
