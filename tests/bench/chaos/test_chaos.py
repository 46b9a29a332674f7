"""`./loom chaos` in both worlds, a few trials each; and that it finds what it is for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.chaos import command as chaos
from bench.chaos.kills import Trial, trial
from bench.commands import COMMANDS
from engine.cli.command import Environment
from engine.cli.main import main
from engine.domain.errors import RunError
from engine.domain.report import Outcome, RunReport
from engine.strategies.registry import strategy
from tests.support.outside import keep_methods_apart, write_method

ENVIRONMENT = Environment(load_cluster=lambda name: None, cluster_names=lambda: (), presets=lambda: ())
TRIALS = 20
FINISHED = "1"
"""A trial of seed 1 that finishes."""


def campaign(*arguments: str) -> int:
    return main(["chaos", *arguments], COMMANDS, ENVIRONMENT)


def row(output: str, name: str) -> int:
    """The number in the printed table's row of this name."""
    (line,) = [line for line in output.splitlines() if line.strip().startswith(name)]
    return int(line.strip().removeprefix(name).split()[0].rstrip(","))


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_predicted_trials_end_well_and_leave_nothing(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign("--world", "predicted", "--seed", seed, "--kills", str(TRIALS)) == 0
    said = capsys.readouterr().out
    endings = [row(said, "finished with the right tokens"), row(said, "ended with a clear reason")]
    assert sum(endings) == TRIALS == row(said, "trials")
    assert endings[0] > 0
    assert row(said, "left behind") == 0


@pytest.mark.root
@pytest.mark.long("bench/chaos", "emulator", "engine/worlds", "engine/runs", "engine/program")
def test_emulated_trials_end_well_and_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign("--seed", "1", "--kills", "4") == 0
    said = capsys.readouterr().out
    endings = [row(said, "finished with the right tokens"), row(said, "ended with a clear reason")]
    assert sum(endings) == 4
    assert row(said, "other work than predicted") == row(said, "left behind") == 0


def test_the_method_of_a_file_alone_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_methods_apart(monkeypatch)
    file = write_method(tmp_path)
    chosen = ("--world", "predicted", "--kills", "4", "--strategy", f"{file}:Thirds")
    assert campaign(*chosen) == 0
    said = capsys.readouterr().out
    endings = [row(said, "finished with the right tokens"), row(said, "ended with a clear reason")]
    assert sum(endings) == 4
    assert trial(1, 0, (strategy("thirds"),)).spec.strategy == "thirds"


def spoiled(change: Callable[[RunReport], RunReport]) -> Callable[[Trial], chaos.Played]:
    play = chaos.predicted
    return lambda trial: chaos.Played(change(play(trial).report), [])


def without_its_last_token(report: RunReport) -> RunReport:
    cut = report.requests[0].model_copy(update={"token_s": report.requests[0].token_s[:-1]})
    return report.model_copy(update={"requests": (cut, *report.requests[1:])})


def in_a_deadlock(report: RunReport) -> RunReport:
    return report.model_copy(update={"outcome": Outcome(kind="deadlock")})


def broken_off(report: RunReport) -> RunReport:
    raise RunError("the emulation ended without a report.")


@pytest.mark.parametrize(
    ("change", "ending"),
    [(without_its_last_token, "wrong tokens"), (in_a_deadlock, "hung"), (broken_off, "failed otherwise")],
)
def test_a_campaign_with_a_bad_ending_fails_and_names_the_trial(
    change: Callable[[RunReport], RunReport],
    ending: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(chaos, "predicted", spoiled(change))
    assert campaign("--world", "predicted", "--seed", "1", "--kills", "1", "--first", FINISHED) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"trial {FINISHED} of seed 1: ")
    assert row(said, ending) == 1


def test_a_campaign_that_leaves_something_behind_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = iter([frozenset(), frozenset({"interface s1-eth9"})])
    monkeypatch.setattr(chaos, "traces_of_runs", lambda: next(seen))
    assert campaign("--world", "predicted", "--seed", "1", "--kills", "1", "--first", FINISHED) == 1
    assert "interface s1-eth9" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "value"), [("--kills", "0"), ("--kills", "-1"), ("--first", "-1")])
def test_a_campaign_without_trials_is_refused(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert campaign("--world", "predicted", option, value) == 2
    assert f"{option} is {value}: it must be" in capsys.readouterr().err
