"""Files that start processes come first, each with all its tests together."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "test_a": "def test_one(): pass\ndef test_two(): pass",
    "test_b": "import pytest\ndef test_one(): pass\n@pytest.mark.redis\ndef test_two(): pass",
    "test_c": "def test_one(): pass",
    "test_d": "import pytest\npytestmark = pytest.mark.root\ndef test_one(): pass",
}


def pytest_in(folder: Path, *options: str) -> str:
    """What pytest says there, with no plugin but the order and those named."""
    return subprocess.run(
        (sys.executable, "-m", "pytest", "-p", "tests.support.order", "-p", "no:cacheprovider", *options),
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_files_that_start_processes_come_first_and_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  redis\n  root\n")
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    said = pytest_in(tmp_path, "-q", "--collect-only")
    assert [line[5] for line in said.splitlines() if "::" in line] == ["b", "b", "d", "a", "a", "c"]


def test_files_that_have_runs_played_go_to_one_worker(tmp_path: Path) -> None:
    """Each of two workers would otherwise begin with one of the first two files."""
    text = "import pytest\n@pytest.fixture\ndef ask_player(): pass\ndef test_it(ask_player): pass"
    for name in ("test_a", "test_b", "test_d"):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "test_c.py").write_text("def test_it(): pass")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    said = pytest_in(tmp_path, "-p", "xdist", "-v", "-n", "2", "--dist", "loadfile")
    workers = {file: worker for worker, file in re.findall(r"\[(gw\d)\].* PASSED test_(.)\.py", said)}
    assert workers["a"] == workers["b"] == workers["d"] != workers["c"], said
