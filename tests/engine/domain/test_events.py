"""The events of a run, all together."""

from engine.domain.events import AttemptBegun, Logged, of_last_attempt


def test_of_a_run_that_began_again_the_events_of_the_last_attempt_count() -> None:
    first, second = Logged(level="info", text="first"), Logged(level="info", text="second")
    begun = [AttemptBegun(number=number, dilation=9.0) for number in (2, 3)]
    assert of_last_attempt([first, begun[0], first, begun[1], second]) == [second]
    assert of_last_attempt([first, second]) == [first, second]
