"""A test that hangs fails at its time limit, with the stacks of its threads and of its child processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HANGS = """
import subprocess
import sys
import threading

def waits_in_a_thread():
    threading.Event().wait(60)

def test_that_waits_for_a_child():
    threading.Thread(target=waits_in_a_thread, daemon=True).start()
    child = "def waits_in_the_child():\\n    input()\\nprint('up', flush=True)\\nwaits_in_the_child()"
    subprocess.run([sys.executable, "-c", child])
"""


def test_a_test_that_hangs_fails_with_the_stacks_of_its_threads_and_children(tmp_path: Path) -> None:
    """Its child waits for a line on a pipe that stays open; nothing else ends it. The limit is over when the
    child is up, however long that takes.
    """
    (tmp_path / "test_hangs.py").write_text(HANGS)
    options = ("-p", "pytest_timeout", "-p", "tests.support.timeouts", "--timeout=900", "--rootdir")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, str(tmp_path), str(tmp_path), "-s"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pytest_process:
        assert pytest_process.stdout is not None
        output = ""
        while not output.endswith("up\n"):
            output += (line := pytest_process.stdout.readline())
            assert line, output
        pytest_process.send_signal(signal.SIGALRM)
        output += pytest_process.stdout.read()
    assert pytest_process.returncode == 1
    assert "1 failed" in output and "Timeout (>900.0s)" in output
    assert "in waits_in_a_thread" in output  # as a stack names it: the test's own text is in the output too
    assert "waits_in_the_child (" in output
