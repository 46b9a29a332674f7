"""A run that is late begins again at the dilation that it needs, whoever asked for it."""

from types import SimpleNamespace
from typing import Any

import pytest

from engine.domain.errors import SpecError
from engine.domain.events import AttemptBegun, Event, PlanMade, ReportMade
from engine.domain.network import LoopbackNetwork
from engine.domain.report import Correctness, Fidelity, Outcome, RunReport
from engine.domain.spec import RunSpec
from engine.runs import execute as executing
from engine.runs.attempts import first_attempt
from engine.runs.conclude import RealResult
from engine.runs.execute import execute
from engine.runs.holds import Most
from engine.runs.predict import prepare
from tests.support.fake_devices import small_spec

SPEC = small_spec().model_copy(update={"dilation": "auto"})
FINE = Fidelity(valid=True)


def needs(dilation: float | None) -> Fidelity:
    return Fidelity(valid=False, enough_dilation=dilation)


class Played:
    """Runs whose devices are not started: each takes the next of `ends`, a verdict, or the dilation at which
    a run that was ended early is to begin again.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ends: Any, changed_live: bool = False):
        self.dilations: list[float] = []
        self.watched: list[bool] = []
        self.events: list[Event] = []
        self.ends = list(ends)
        self.changed_live = changed_live
        monkeypatch.setattr(executing, "Supervisor", self.supervisor)
        monkeypatch.setattr(executing, "report_of", self.report_of)
        monkeypatch.setattr(executing, "compare_with_reference", lambda *given: Correctness(ok=True))
        monkeypatch.setattr(executing, "choose_dilation", lambda *given, **more: 2.0)

    def supervisor(self, assignment: Any, network: Any, dilation: float, *more: Any, **named: Any) -> Any:
        self.dilations.append(dilation)
        self.watched.append(named["expected"] is not None)
        needed = self.ends.pop(0) if isinstance(self.ends[0], float) else None
        outcome = Outcome(kind="cancelled" if needed else "finished")
        result = RealResult([], outcome, (), {}, 0.0, 0, (), (), self.changed_live, needed)
        return SimpleNamespace(run=lambda: result)

    def report_of(self, prepared: Any, result: Any, dilation: float, *more: Any) -> RunReport:
        fidelity = self.ends.pop(0)
        return RunReport(
            spec=prepared.spec, plan=None, world="emulated", dilation=dilation, fidelity=fidelity
        )

    def run(self, spec: RunSpec = SPEC) -> RunReport:
        return execute(spec, lambda spec, dilation: LoopbackNetwork(spec.cluster), self.events.append)

    def seen(self, kind: Any) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def test_a_run_that_is_not_valid_is_repeated_once_at_the_dilation_that_it_recommends(monkeypatch):
    played = Played(monkeypatch, needs(9.0), FINE)
    report = played.run()
    assert played.dilations == [2.0, 9.0] and report.dilation == 9.0
    assert report.fidelity.valid and report.correctness.ok
    assert report.fidelity.notes == (
        "This is the second attempt: other work on this machine delayed what came before.",
    )
    assert played.seen(AttemptBegun) == [
        AttemptBegun(number=2, dilation=9.0, words="second attempt, dilation 9: other work on this machine")
    ]
    assert len(played.seen(PlanMade)) == 2 and len(played.seen(ReportMade)) == 1


def test_no_attempt_has_more_than_eight_times_the_dilation_or_what_makes_a_short_run_last_two_seconds():
    assert first_attempt(2.0, 10.0).after_early_end(9.0).dilation == 9.0
    assert first_attempt(2.0, 10.0).after_early_end(44.0).dilation == 16.0
    assert first_attempt(2.0, 0.1).after_early_end(44.0).dilation == 20.0


def test_a_second_run_that_is_not_valid_stays_so(monkeypatch):
    played = Played(monkeypatch, needs(9.0), needs(30.0))
    assert played.run().fidelity.valid is False and played.dilations == [2.0, 9.0]


def test_a_run_that_ends_early_begins_again_twice_and_may_still_be_repeated(monkeypatch):
    played = Played(monkeypatch, 3.0, 5.0, needs(8.0), FINE)
    assert played.run().fidelity.valid and played.dilations == [2.0, 3.0, 5.0, 8.0]
    assert [event.number for event in played.seen(AttemptBegun)] == [2, 3, 4]


def test_a_run_that_is_late_at_the_largest_dilation_goes_on_and_says_so(monkeypatch):
    """What is late with it would be so again. The largest is 16, eight times the one chosen for it."""
    monkeypatch.setattr(executing, "end_s", lambda trace: 10.0)
    played = Played(monkeypatch, 44.0, needs(99.0))
    report = played.run()
    assert played.dilations == [2.0, 16.0] and played.watched == [True, False]
    assert report.fidelity.valid is False
    assert report.fidelity.notes == (
        "This is the second attempt: other work on this machine delayed what came before. It was late with "
        "dilation 16, too, the largest that EdgeLoom chooses: start it again when there is less other work "
        "on this machine, or give a dilation.",
    )


@pytest.mark.parametrize(
    ("end", "dilation", "changed_live", "note"),
    [
        (needs(9.0), 2.0, False, ""),  # a number that a person gave belongs to the run
        (needs(None), "auto", False, ""),  # no dilation mends it
        (needs(9.0), "auto", True, "not repeated, because somebody changed something"),
        (FINE, "auto", True, ""),
    ],
)
def test_otherwise_the_first_attempt_counts(monkeypatch, end, dilation, changed_live, note):
    played = Played(monkeypatch, end, changed_live=changed_live)
    report = played.run(SPEC.model_copy(update={"dilation": dilation}))
    assert len(played.dilations) == 1 and report.fidelity.valid is end.valid
    assert note in " ".join(report.fidelity.notes) and bool(report.fidelity.notes) == bool(note)


def test_a_dilation_with_which_nobody_would_see_the_end_is_refused_with_the_arithmetic(monkeypatch):
    played = Played(monkeypatch)
    with pytest.raises(SpecError, match=r"1e\+09 times the .* is predicted to take is .* at most 86400 s"):
        played.run(SPEC.model_copy(update={"dilation": 1e9}))
    assert played.dilations == []


def test_a_new_attempt_begins_its_texts_anew(tmp_path):
    execution = executing._Execution(SPEC, lambda event: None, 1.0, Most(), None, tmp_path)
    execution._text({"request": 0, "token": 1})
    assert execution.texts
    execution._begin_again(first_attempt(2.0, 1.0), SimpleNamespace(prepared=prepare(SPEC)))
    assert not execution.texts
