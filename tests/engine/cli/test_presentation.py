"""Exit statuses, badges and progress lines: what a script and a person can rely on."""

from __future__ import annotations

import io
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.cli.present import check_writable, exit_status, present, verdict
from engine.cli.progress import RunProgress, describe
from engine.cli.tables import bar, show_report
from engine.domain.errors import SpecError
from engine.domain.events import ClockTicked, Event, Logged, StateChanged
from engine.domain.report import (
    Correctness,
    Fidelity,
    FromHereOn,
    LinkReport,
    Outcome,
    Prediction,
    Predictions,
    RunReport,
)
from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.runs.predict import predict
from tests.support.tiny_run import MODEL
from tests.support.web import run_spec


def report(dilation: Any = "auto", **more: Any) -> RunReport:
    spec = RunSpec(cluster=topologies.load("lab-3"), model=MODEL, strategy="gpipe", dilation=dilation)
    good: dict[str, Any] = {
        "world": "native" if dilation == "native" else "emulated",
        "correctness": Correctness(checked=True, ok=True, token_identical=True),
        "fidelity": Fidelity(valid=True),
    }
    return RunReport(spec=spec, plan=None, dilation=2.0, **(good | more))


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (report(), 0),
        (report(world="predicted", correctness=Correctness(), fidelity=Fidelity()), 0),
        (report(correctness=Correctness(checked=True, ok=False)), 3),
        (report(correctness=Correctness()), 3),
        (report(correctness=Correctness(checked=True, lossy=True)), 0),
        (report(correctness=Correctness(checked=True, lossy=True, ok=False)), 3),
        (report(fidelity=Fidelity(valid=False)), 3),
        (report(fidelity=Fidelity()), 3),
        (report(outcome=Outcome(kind="peer_lost")), 3),
        (report(outcome=Outcome(kind="cancelled"), world="predicted"), 3),
        (report(dilation="native", fidelity=Fidelity()), 0),
        (report(dilation="native", fidelity=Fidelity(valid=False)), 3),
        (report(dilation="native", correctness=Correctness(checked=True, ok=False)), 3),
    ],
)
def test_only_a_finished_correct_and_valid_run_has_status_0(run: RunReport, status: int) -> None:
    assert exit_status(run) == status


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (report(), ""),
        (report(dilation="native", fidelity=Fidelity()), ""),
        (
            report(fidelity=Fidelity(valid=False, why=("slow: raise the dilation from 2 to 3.",))),
            "not valid: slow: raise the dilation from 2 to 3.",
        ),
        (report(correctness=Correctness(checked=True, ok=False, why="other")), "not correct: other"),
        (
            report(correctness=Correctness(), fidelity=Fidelity()),
            "not correct: the outputs were not compared with the reference; "
            "not valid: its times could not be judged",
        ),
        (report(outcome=Outcome(kind="peer_lost", sentence="b failed.")), "b failed."),
        (report(outcome=Outcome(kind="cancelled"), world="predicted"), "cancelled"),
    ],
)
def test_a_run_with_another_status_has_a_line_that_says_why(run: RunReport, line: str) -> None:
    assert verdict(run) == line
    assert bool(line) == bool(exit_status(run))


def test_the_last_line_of_a_run_that_is_not_valid_is_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    invalid = report(fidelity=Fidelity(valid=False, why=("raise the dilation from 2 to 3.",)))
    assert present(invalid, Namespace(json=None)) == 3
    assert capsys.readouterr().err.splitlines()[-1] == "not valid: raise the dilation from 2 to 3."


def test_a_report_that_could_not_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    check_writable(None)
    check_writable("-")
    check_writable(str(tmp_path / "new.json"))
    for target, reason in ((tmp_path / "no" / "x.json", "there is no folder"), (tmp_path, "it is a folder")):
        with pytest.raises(SpecError, match=f"cannot write: {reason}"):
            check_writable(str(target))


def shown(run: RunReport) -> str:
    stream = io.StringIO()
    show_report(run, stream)
    return stream.getvalue()


def test_a_good_run_wears_its_badges() -> None:
    good = report(
        correctness=Correctness(checked=True, ok=True, token_identical=True, max_rel_error=2.5e-7),
        fidelity=Fidelity(valid=True, compute_error_p95=0.012, link_error_max=0.034, backend="tbf"),
    )
    text = shown(good)
    for part in ("finished", "correct", "same tokens", "2.5e-07", "valid", "1.2%", "3.4%", "tbf"):
        assert part in text


def test_a_lossy_run_is_neither_correct_nor_wrong_and_says_how_far_it_is_off() -> None:
    text = shown(
        report(
            correctness=Correctness(
                checked=True,
                lossy=True,
                token_identical=False,
                max_rel_error=0.04,
                kl_mean=0.0123,
                top1_agreement=0.75,
            )
        )
    )
    for part in ("lossy", "other tokens", "4.0e-02", "1.23e-02", "75%"):
        assert part in text
    assert "correct" not in text
    assert "WRONG" not in text


def test_a_bad_run_says_why() -> None:
    text = shown(
        report(
            correctness=Correctness(checked=True, ok=False, why="token 3 differs"),
            fidelity=Fidelity(valid=False, why=("link a--b is 20 % slow",)),
            outcome=Outcome(kind="peer_lost", sentence="shelf failed at 1.500 s."),
        )
    )
    for part in ("WRONG", "token 3 differs", "INVALID", "link a--b is 20 % slow", "shelf failed at 1.5"):
        assert part in text


def test_a_prediction_stands_beside_the_run() -> None:
    predicted = Prediction(latency_s=1.25, ttft_s=0, tpot_s=0, tokens_per_s=0, peak_memory_bytes={})
    text = shown(report(latency_s=1.5, predictions=Predictions(with_all_changes_known=predicted)))
    (line,) = (line for line in text.splitlines() if "end-to-end" in line)
    assert "1.5 s" in line and "1.25 s" in line


def test_the_three_predictions_of_a_disturbed_run_stand_apart() -> None:
    def predicted(latency_s: float) -> Prediction:
        return Prediction(latency_s=latency_s, ttft_s=0, tpot_s=0, tokens_per_s=0, peak_memory_bytes={})

    later = FromHereOn(at_s=0.4, changes=1, left_s=3.8, latency_s=4.2)
    made = Predictions(
        before_the_start=predicted(1.55), from_here_on=(later,), with_all_changes_known=predicted(4.26)
    )
    slowed = Scenario(changes=(SlowDevice(at_s=0.4, device="desk", factor=3),))
    lines = shown(report(latency_s=4.3, predictions=made, scenario=slowed)).splitlines()
    (names,) = (line for line in lines if "predicted before the start" in line)
    assert names.index("before the start") < names.index("predicted with all changes known")
    assert [line.split() for line in lines if "end-to-end" in line] == [
        ["end-to-end", "latency", "4.3", "s", "1.55", "s", "4.26", "s", "+0.9%"]
    ]
    after = next(line for line in lines if "after one change" in line)
    assert after.split()[3:] == ["400", "ms", "3.8", "s", "4.2", "s"]
    assert "before the start" not in shown(report(latency_s=4.3, predictions=made))  # the same to the eye


def test_the_achieved_rate_is_shown_where_one_was_measured() -> None:
    link = LinkReport(
        a="desk", b="hub", direction="backward", bytes=10, payload_bytes=5, busy_s=1, rate_bit_per_s=1e8
    )
    assert "achieved" not in shown(report(links=(link,)))
    text = shown(report(links=(link.model_copy(update={"achieved_bit_per_s": 9.6e7}),)))
    assert "achieved" in text and "96 Mbit/s" in text and "hub → desk" in text


def test_parallel_links_are_told_apart() -> None:
    first = LinkReport(
        a="desk", b="hub", direction="backward", bytes=10, payload_bytes=5, busy_s=1, rate_bit_per_s=1e8
    )
    text = shown(report(links=(first, first.model_copy(update={"parallel": 2}))))
    assert "hub → desk  " in text and "hub → desk (2)" in text


def test_text_of_a_model_is_never_read_as_markup() -> None:
    assert "[red]x[/nope]" in shown(report(text="[red]x[/nope]"))


@pytest.mark.parametrize(
    ("fraction", "cells"), [(0, "░░░░"), (0.5, "██░░"), (1, "████"), (7, "████"), (-1, "░░░░")]
)
def test_bars_stay_in_their_cells(fraction: float, cells: str) -> None:
    assert bar(fraction, 4) == cells


TOKEN = Mark(
    1.0, "token_emitted", "a", {"request": 0, "index": 2, "token": 7, "text": " the", "latency_s": 0.05}
)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (StateChanged(state="building", detail="3 devices"), "building: 3 devices"),
        (StateChanged(state="running"), "running"),
        (TOKEN, "1.000 s request 0 token 2: ' the' after 50 ms"),
        (replace(TOKEN, facts={"request": 1, "index": 0, "token": 7}), "1.000 s request 1 token 0: 7"),
        (
            Mark(2.0, "link_changed", facts={"link": "a--b", "direction": "forward", "bit_per_s": 2e7}),
            "2.000 s a--b forward set to 20 Mbit/s",
        ),
        (Mark(2.0, "link_down", facts={"link": "a--b"}), "2.000 s a--b is down"),
        (Mark(2.5, "device_lost", "b"), "2.500 s b failed"),
        (Logged(level="warning", text="late"), "warning: late"),
        (Logged(level="info", text="x"), ""),
        (Span("a", "compute", "ffn", 0, 0.0, 1.0), ""),
        (ClockTicked(time_s=1.0, wall_s=2.0), ""),
    ],
)
def test_events_become_lines_for_people(event: Event, line: str) -> None:
    assert describe(event) == line


def test_progress_is_plain_lines_without_a_terminal() -> None:
    stream = io.StringIO()
    with RunProgress(report().spec, stream) as progress:
        progress.events([StateChanged(state="running"), TOKEN])
    assert stream.getvalue() == "running\n1.000 s request 0 token 2: ' the' after 50 ms\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with RunProgress(report().spec, stream) as progress:
        progress.events([StateChanged(state="running"), TOKEN, TOKEN])
        assert progress.bar is not None
        progress.bar.refresh()
        progress.events([StateChanged(state="queued", detail="1 run ahead", ahead=1)])
        progress.bar.refresh()
    assert "2/16" in stream.getvalue() and "running" in stream.getvalue()
    assert "queued: 1 run ahead" in stream.getvalue(), "for what it waits, a terminal says, too"


def test_a_run_whose_plan_stays_on_one_device_says_so_beside_its_method() -> None:
    def headline(strategy: str) -> str:
        shown = io.StringIO()
        show_report(predict(run_spec(strategy=strategy)), shown)
        return shown.getvalue().splitlines()[0]

    assert "· gpipe on desk alone · lab-3" in headline("gpipe") and "· voltage · lab-3" in headline("voltage")
