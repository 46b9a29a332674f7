"""Recovery times, from marks with times that were chosen to add up."""

from engine.domain.trace import Mark
from engine.reports.recoveries import fold_recoveries


def loss(at_s, device="b", how="killed", since_s=None):
    return Mark(at_s, "loss_detected", device, {"how": how, "since_s": at_s if since_s is None else since_s})


def token(at_s):
    return Mark(at_s, "token_emitted", facts={"request": 0, "index": 0, "token": 1})


def test_a_recovery_is_detect_replan_reload_and_rebuild():
    marks = [
        token(0.5),
        Mark(1.0, "device_lost", "b"),
        loss(1.25, since_s=1.0),
        Mark(1.5, "replanned", facts={}),
        Mark(2.0, "reloaded", "a"),
        Mark(2.5, "reloaded", "c"),
        token(3.5),
        token(4.0),
    ]
    (recovery,) = fold_recoveries(marks)
    assert (recovery.device, recovery.how, recovery.at_s, recovery.replanned) == ("b", "killed", 1.0, True)
    assert (recovery.detect_s, recovery.replan_s, recovery.reload_s, recovery.rebuild_s) == (
        0.25,
        0.25,
        1.0,
        1.0,
    )


def test_a_strategy_that_copes_by_itself_only_needs_time_to_its_next_token():
    (recovery,) = fold_recoveries([loss(1.0), token(1.5)])
    assert not recovery.replanned
    assert (recovery.replan_s, recovery.reload_s, recovery.rebuild_s) == (0.0, 0.0, 0.5)


def test_two_failures_are_two_recoveries_and_the_first_may_have_no_token_of_its_own():
    marks = [
        loss(1.0),
        Mark(1.1, "replanned", facts={}),
        loss(1.2, "c"),
        Mark(1.3, "replanned", facts={}),
        Mark(1.5, "reloaded", "a"),
        token(2.0),
    ]
    first, second = fold_recoveries(marks)
    assert first.rebuild_s is None
    assert (second.device, second.rebuild_s) == ("c", 0.5)


def test_a_device_that_joins_is_known_at_once():
    marks = [
        Mark(1.0, "device_joined", "d"),
        Mark(1.5, "replanned", facts={}),
        Mark(1.75, "reloaded", "d"),
        token(2.0),
    ]
    (recovery,) = fold_recoveries(marks)
    times_s = (recovery.detect_s, recovery.replan_s, recovery.reload_s)
    assert (recovery.how, times_s) == ("joined", (0.0, 0.5, 0.25))


def test_a_token_at_the_moment_of_the_next_failure_belongs_to_the_time_after_it():
    first, second = fold_recoveries([loss(1.0), loss(2.0, "c"), token(2.0), token(2.5)])
    assert (first.rebuild_s, second.rebuild_s) == (None, 0.5)


def test_a_frozen_device_that_was_missed_and_joins_later_is_two_recoveries():
    marks = [
        Mark(1.0, "device_frozen", "b"),
        loss(3.0, how="frozen", since_s=1.0),
        token(3.5),
        Mark(4.0, "device_joined", "b"),
        token(4.25),
    ]
    assert [(one.how, one.at_s, one.detect_s, one.rebuild_s) for one in fold_recoveries(marks)] == [
        ("frozen", 1.0, 2.0, 0.5),
        ("joined", 4.0, 0.0, 0.25),
    ]


def test_a_device_that_was_frozen_and_went_on_unmissed_is_no_recovery():
    marks = [Mark(1.0, "device_frozen", "b"), Mark(1.2, "device_joined", "b"), token(1.5)]
    assert fold_recoveries(marks) == ()


def test_a_token_that_was_still_under_way_while_others_loaded_does_not_end_the_recovery():
    marks = [
        loss(1.0),
        token(1.1),
        Mark(1.5, "replanned", facts={}),
        Mark(2.0, "reloaded", "a"),
        token(2.75),
    ]
    (recovery,) = fold_recoveries(marks)
    assert recovery.rebuild_s == 0.75
