"""Long work says how far it is and how long it takes, and Ctrl-C ends it in order."""

import io
import os
import signal

import pytest

from engine.cli.long_work import AFTER_S, LongWork


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")


def test_short_work_says_nothing_on_a_terminal(clock: Clock) -> None:
    stream = Terminal()
    with LongWork("predicting", 10, stream=stream, clock=clock) as work:
        for _ in range(10):
            clock.now_s += AFTER_S / 11
            work.done()
    assert stream.getvalue() == ""


def test_after_two_seconds_a_terminal_shows_what_is_done_and_how_long_the_rest_takes(clock: Clock) -> None:
    stream = Terminal()
    with LongWork("predicting", 1000, unit="requests", stream=stream, clock=clock) as work:
        clock.now_s += 4.0
        work.reached(100)
        work.reached(90)  # requests may end in another order
    assert "predicting, 100 of 1,000 requests, about 36 s left" in stream.getvalue()


def test_what_was_done_before_says_nothing_of_the_pace(clock: Clock) -> None:
    with LongWork("", 10, before=8, stream=Terminal(), clock=clock) as work:
        clock.now_s += 4.0
        work.done()
        assert work.remaining_s() == 4.0


def test_work_that_cannot_be_counted_goes_by_what_it_was_expected_to_take(clock: Clock) -> None:
    stream = Terminal()
    with LongWork("calibrating", expected_s=50.0, stream=stream, clock=clock) as work:
        clock.now_s += 20.0
        work.note("slowdown")
        assert work.frac() == 0.4
    shown = stream.getvalue()
    assert shown.startswith("about 50 s on this machine now; Ctrl-C stops it")
    assert "calibrating, slowdown, about 30 s left" in shown


def test_a_pipe_gets_at_most_ten_lines_and_none_of_short_work(clock: Clock) -> None:
    stream = io.StringIO()
    with LongWork("", 1000, unit="points", stream=stream, clock=clock) as work:
        for _ in range(500):
            work.done()
        assert stream.getvalue() == ""
        clock.now_s += 10.0
        for _ in range(500):
            work.done()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "600 of 1,000 points, about 6.67 s left" and lines[-1] == "1,000 of 1,000 points"
    assert len(lines) == 5


def test_ctrl_c_asks_work_that_listens_to_end_and_interrupts_all_other(clock: Clock) -> None:
    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with LongWork("", stops=True, stream=io.StringIO(), clock=clock) as work:
        assert not work.stopped()
        press()
        assert work.stopped()
        with pytest.raises(KeyboardInterrupt):
            press()  # it does not want to wait
    with LongWork("", stops=True, stream=io.StringIO(), clock=clock) as work:
        assert not work.stopped()
        clock.now_s += 1.0  # it has not asked for long: it does something else
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before
