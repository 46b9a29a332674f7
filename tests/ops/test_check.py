"""`./loom test` runs every check to its end, and every test exactly once, in one of two groups."""

import subprocess
import sys

import pytest

from webapp.ops import check
from webapp.ops.check import ALONE, Check, checks, failed_checks


def python(name: str, code: str) -> Check:
    return Check(name, (sys.executable, "-c", code))


def test_every_check_runs_and_those_that_fail_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    made = [
        python("good", "print('unimportant')"),
        python("bad", "print('what is wrong'); raise SystemExit(3)"),
        python("good too", ""),
        python("bad too", "import sys; sys.stderr.write('also wrong'); sys.exit(1)"),
    ]
    assert failed_checks(made, at_once=2) == ["bad", "bad too"]
    said = capfd.readouterr().err
    assert "what is wrong" in said and "also wrong" in said
    assert "unimportant" not in said


def test_a_check_gets_its_directory_and_its_environment(tmp_path) -> None:
    code = f"import os; assert os.getcwd() == {str(tmp_path)!r} and os.environ['X_CHECK'] == '1'"
    assert failed_checks([Check("place", (sys.executable, "-c", code), tmp_path, {"X_CHECK": "1"})], 1) == []


def collected(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[list[str]]:
    """The arguments of each start of pytest by `./loom test`, without running it."""
    runs: list[list[str]] = []

    def run(command, **options):
        runs.append(list(command[3:]))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(check, "set_up", lambda **what: False)
    monkeypatch.setattr(check, "node_environment", dict)
    monkeypatch.setattr(check, "failed_checks", lambda checks, at_once: [])
    monkeypatch.setattr(check.subprocess, "run", run)
    assert check.test(arguments) == 0
    return runs


def test_the_two_groups_of_tests_leave_none_out(monkeypatch: pytest.MonkeyPatch) -> None:
    beside, alone = collected(monkeypatch)
    assert beside[-2:] == ["-m", f"not ({ALONE})"]
    assert alone == ["-m", ALONE]


def test_arguments_go_to_pytest_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collected(monkeypatch, "tests/ops", "-k", "port") == [["tests/ops", "-k", "port"]]


def test_a_group_that_fails_does_not_keep_the_other_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    monkeypatch.setattr(check, "set_up", lambda **what: False)
    monkeypatch.setattr(check, "node_environment", dict)
    monkeypatch.setattr(check, "failed_checks", lambda checks, at_once: [])
    monkeypatch.setattr(check, "run_pytest", lambda *given: runs.append(given) or len(runs) == 1)
    assert check.test([]) == 1
    assert len(runs) == 2


def test_checks_have_distinct_names() -> None:
    names = [made.name for made in checks({})]
    assert len(set(names)) == len(names) >= 7
