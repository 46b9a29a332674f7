"""Set-up is done once, again when its inputs change, and goes on where it was interrupted."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.ops.conftest import is_running, wait_until
from webapp.ops import steps
from webapp.ops.places import OpsError
from webapp.ops.steps import Step, run_steps


@pytest.fixture(autouse=True)
def logs_in_tmp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(steps, "SETUP_DIR", tmp_path / "loom")


def counting_step(directory: Path, name: str = "Counted", code: str = "") -> Step:
    """Appends a line to a file each time it is done, then runs `code`."""
    lock = directory / f"{name}.lock"
    if not lock.exists():
        lock.write_text("one==1\n")
    done = directory / f"{name}.done"
    program = f"open({str(done)!r}, 'a').write('x'); {code}"
    return Step(
        name, (sys.executable, "-c", program), directory / "stamps" / name, inputs=(lock,), outputs=(done,)
    )


def times_done(directory: Path, name: str = "Counted") -> int:
    path = directory / f"{name}.done"
    return len(path.read_text()) if path.exists() else 0


def test_a_step_is_done_once(tmp_path: Path) -> None:
    step = counting_step(tmp_path)
    assert run_steps([step])
    assert not run_steps([step])
    assert times_done(tmp_path) == 1


def test_a_changed_lock_file_makes_its_step_due_again(tmp_path: Path) -> None:
    step = counting_step(tmp_path)
    run_steps([step])
    (tmp_path / "Counted.lock").write_text("one==2\n")
    assert run_steps([step])
    assert times_done(tmp_path) == 2


def test_a_new_file_in_a_source_folder_makes_the_build_due_again(tmp_path: Path) -> None:
    sources = tmp_path / "src"
    (sources / "pages").mkdir(parents=True)
    (sources / "pages" / "start.tsx").write_text("start")
    step = Step("Build", (sys.executable, "-c", ""), tmp_path / "stamp", inputs=(sources,))
    run_steps([step])
    assert step.is_done()
    (sources / "pages" / "more.tsx").write_text("more")
    assert not step.is_done()


def test_a_missing_output_makes_its_step_due_again(tmp_path: Path) -> None:
    step = counting_step(tmp_path)
    run_steps([step])
    (tmp_path / "Counted.done").unlink()
    assert not step.is_done()


def test_a_failed_step_names_its_log_and_the_next_set_up_goes_on_from_it(tmp_path: Path) -> None:
    first = counting_step(tmp_path, "First")
    broken = counting_step(tmp_path, "Second", code="print('no network'); raise SystemExit(7)")
    with pytest.raises(OpsError, match=r"Second failed .* status 7.*'no network'.*second\.log") as caught:
        run_steps([first, broken])
    assert str(caught.value).count("\n") == 0
    assert "no network" in (tmp_path / "loom" / "logs" / "second.log").read_text()
    repaired = counting_step(tmp_path, "Second")
    assert run_steps([first, repaired])
    assert times_done(tmp_path, "First") == 1
    assert times_done(tmp_path, "Second") == 2


def test_a_step_that_ends_well_without_its_output_is_an_error(tmp_path: Path) -> None:
    step = Step("Empty", (sys.executable, "-c", ""), tmp_path / "stamp", outputs=(tmp_path / "nothing",))
    with pytest.raises(OpsError, match=r"left no .*nothing"):
        run_steps([step])
    assert not step.is_done()


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    step = Step("Odd", ("/nowhere/program",), tmp_path / "stamp")
    with pytest.raises(OpsError, match=r"Odd: /nowhere/program cannot be started: No such file"):
        run_steps([step])


def test_ending_a_set_up_ends_its_command_and_what_that_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    waits = "import signal; signal.pause()"
    code = (
        f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {waits!r}]);"
        f"open({str(started)!r}, 'w').write(str(child.pid)); child.wait()"
    )
    step = Step("Endless", (sys.executable, "-c", code), tmp_path / "stamp")
    with steps.only_one_set_up(), ThreadPoolExecutor(1) as pool:
        lane = pool.submit(step.do)
        wait_until(lambda: started.exists() and started.read_text(), "the command")
        steps.COMMANDS.end()
        with pytest.raises(KeyboardInterrupt):
            lane.result()
    wait_until(lambda: not is_running(int(started.read_text())), "the end of what it started")
    assert not step.is_done()


def test_a_second_set_up_waits_for_a_command_that_outlived_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first was killed; its command holds the lock that it inherited."""
    with steps.only_one_set_up():
        orphan = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=steps.COMMANDS.inherited
        )
    entered = threading.Event()

    def second() -> None:
        with steps.only_one_set_up():
            entered.set()

    thread = threading.Thread(target=second)
    thread.start()
    wait_until(lambda: "Waiting for another set-up" in capsys.readouterr().err, "the sentence")
    assert not entered.is_set()
    orphan.communicate(b"\n")
    thread.join(60)
    assert entered.is_set()
