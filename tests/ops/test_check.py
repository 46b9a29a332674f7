"""`./loom test` runs every check to its end, and every test but campaigns once, in one of three groups."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from webapp.ops import check
from webapp.ops.check import NO_TESTS_COLLECTED, TESTS, Check, checks, failed_checks


def python(name: str, code: str) -> Check:
    return Check(name, (sys.executable, "-c", code))


def test_every_check_runs_and_those_that_fail_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    made = [
        python("good", "print('unimportant')"),
        python("bad", "print('what is wrong'); raise SystemExit(3)"),
        python("good too", ""),
        python("bad too", "import sys; sys.stderr.write('also wrong'); sys.exit(1)"),
    ]
    assert failed_checks(made) == ["bad", "bad too"]
    said = capfd.readouterr().err
    assert "what is wrong" in said and "also wrong" in said
    assert "unimportant" not in said


def test_a_check_gets_its_directory_and_its_environment(tmp_path) -> None:
    code = f"import os; assert os.getcwd() == {str(tmp_path)!r} and os.environ['X_CHECK'] == '1'"
    assert failed_checks([Check("place", (sys.executable, "-c", code), tmp_path, {"X_CHECK": "1"})]) == []


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each start of pytest by `./loom test`, without running it."""
    found: list[list[str]] = []

    def run(command, **options):
        found.append(list(command[3:]))
        return subprocess.CompletedProcess(command, 0, stdout="")

    monkeypatch.setattr(check, "set_up", lambda **what: False)
    monkeypatch.setattr(check, "node_environment", dict)
    monkeypatch.setattr(check, "checks", lambda node: ())
    monkeypatch.setattr(check.subprocess, "run", run)
    return found


SIDE_BY_SIDE = "(not long) and not (alone or browser or redis)"
ONE_BY_ONE = "(not long) and not alone and (browser or redis)"


def selected(runs: list[list[str]]) -> dict[str, list[str]]:
    """Each start's selection → all its arguments, those that run alone last."""
    return {run[run.index("-m") + 1]: run for run in sorted(runs, key=lambda run: run is runs[-1])}


def files(run: list[str]) -> set[str]:
    return {Path(given).stem for given in run if given.endswith(".py")}


def test_the_groups_of_tests_leave_only_campaigns_out_and_say_so(runs, capfd) -> None:
    assert check.test([]) == 0
    found = selected(runs)
    assert len(runs) == len(found) == 3
    assert found[SIDE_BY_SIDE][-1] == str(TESTS)
    assert {"test_main_job", "test_workers"} <= files(found[ONE_BY_ONE])
    assert list(found)[-1] == "(not long) and alone"
    assert "Campaigns were left out" in capfd.readouterr().err


def test_only_folders_are_left_out_side_by_side_whose_every_test_runs_in_the_browser(runs) -> None:
    """This file names the marker, and so its whole folder had been left out."""
    check.run_groups("not long")
    given = selected(runs)[SIDE_BY_SIDE]
    left_out = [Path(option.partition("=")[2]) for option in given if option.startswith("--ignore=")]
    assert left_out == [TESTS / "browser"]
    for path in left_out[0].glob("test_*.py"):
        assert re.search(r"^pytestmark = \[\s*pytest\.mark\.browser\b", path.read_text(), re.MULTILINE), path


def test_every_file_with_a_test_that_runs_alone_or_waits_for_servers_is_in_its_group(runs, tmp_path) -> None:
    """pytest would find them by itself, but it would import all files for that."""
    texts = {
        "test_all": "pytestmark = [pytest.mark.root, pytest.mark.alone]",
        "test_one": "@pytest.mark.alone\ndef test_it(): ...",
        "test_case": "pytest.param(1, marks=pytest.mark.alone)",
        "test_none": "def test_that_a_person_is_alone(): ...",
        "test_page": "pytestmark = [pytest.mark.browser]",
        "test_worker": "pytestmark = [pytest.mark.redis, pytest.mark.browser]",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    check.run_groups("not long", tmp_path)
    found = selected(runs)
    assert files(found["(not long) and alone"]) == {"test_all", "test_one", "test_case"}
    assert files(found[ONE_BY_ONE]) == {"test_page", "test_worker"}
    assert len(found[ONE_BY_ONE]) == len({*found[ONE_BY_ONE]}), "each once, whatever it waits for"


def test_the_campaigns_run_in_the_same_groups_with_a_word_on_their_time(runs, capfd) -> None:
    assert check.test(["--long", "--changed-since", "abc"]) == 0
    side_by_side, one_by_one = (which.replace("not long", "long") for which in (SIDE_BY_SIDE, ONE_BY_ONE))
    assert selected(runs).keys() == {side_by_side, one_by_one, "(long) and alone"}
    assert all(("--changed-since", "abc") in itertools.pairwise(run) for run in runs)
    assert "-n" not in selected(runs)[one_by_one], "some stop what others would use"
    assert "minutes" in capfd.readouterr().err


def test_the_name_of_a_folder_runs_its_tests_and_no_group_that_it_lacks(runs) -> None:
    check.test(["contract"])
    assert [run[-1] for run in runs] == [str(TESTS / "contract")]
    check.test(["browser"])
    browser = selected(runs)[ONE_BY_ONE]
    assert "test_main_job" in files(browser)
    assert all(path.startswith(str(TESTS / "browser")) for path in browser if path.endswith(".py"))


def test_other_arguments_go_to_pytest_as_they_are(runs) -> None:
    assert check.test(["tests/ops", "-k", "port"]) == 0
    assert runs == [["tests/ops", "-k", "port"]]


@pytest.mark.parametrize("fails", ["side by side", "one by one", "alone", "checks", "nothing"])
def test_nothing_that_fails_keeps_the_rest_from_running(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    selections = {
        "side by side": SIDE_BY_SIDE,
        "one by one": ONE_BY_ONE,
        "alone": "(not long) and alone",
        "checks": "the check",
    }
    ran = []

    def run(command, **options):
        ran.append(command)
        return subprocess.CompletedProcess(command, int(selections.get(fails) in command), stdout="")

    monkeypatch.setattr(check, "set_up", lambda **what: False)
    monkeypatch.setattr(check, "node_environment", dict)
    monkeypatch.setattr(check, "checks", lambda node: (Check("one", ("the check",)),))
    monkeypatch.setattr(check.subprocess, "run", run)
    assert check.test([]) == (fails != "nothing")
    assert len(ran) == 4


def test_a_group_in_which_no_test_is_wanted_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, expected in ((NO_TESTS_COLLECTED, 0), (1, 1), (2, 2)):
        monkeypatch.setattr(
            check.subprocess,
            "run",
            lambda *given, status=status, **more: subprocess.CompletedProcess((), status),
        )
        assert check.run_pytest("some") == expected


def test_checks_have_distinct_names() -> None:
    names = [made.name for made in checks({})]
    assert len(set(names)) == len(names) >= 7
