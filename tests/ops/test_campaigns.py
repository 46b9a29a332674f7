"""`--changed-since` leaves out the campaigns that no change concerns."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INI = """[pytest]
markers = long(path): a campaign
"""
TESTS = """
import pytest

@pytest.mark.long("engine", "docs/adding.md")
def test_of_the_engine(): pass

@pytest.mark.long("webapp")
def test_of_the_web(): pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit and two campaigns."""
    for name, text in (
        ("pytest.ini", INI),
        ("tests/test_a.py", TESTS),
        ("engine/a.py", ""),
        ("webapp/a.py", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(("git", *command), cwd=tmp_path, check=True)
    return tmp_path


def ran(project: Path) -> set[str]:
    """The campaigns that pytest runs there for the changes since the commit."""
    options = (
        "-p",
        "tests.support.campaigns",
        "-p",
        "no:cacheprovider",
        "--changed-since=HEAD",
    )
    said = subprocess.run(
        (sys.executable, "-m", "pytest", "-v", "--rootdir", str(project), *options, str(project)),
        cwd=project,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode in (0, 5), said.stdout + said.stderr
    return {name for name in ("test_of_the_engine", "test_of_the_web") if f"{name} PASSED" in said.stdout}


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [
        ((), set()),
        (("engine/a.py",), {"test_of_the_engine"}),
        (("engine/new/b.py",), {"test_of_the_engine"}),
        (("engine_of_others/a.py",), set()),
        (("docs/adding.md", "webapp/a.py"), {"test_of_the_engine", "test_of_the_web"}),
        (("tests/test_a.py",), {"test_of_the_engine", "test_of_the_web"}),
    ],
)
def test_a_campaign_runs_when_a_file_that_concerns_it_has_changed(
    project: Path, changed: tuple[str, ...], concerned: set[str]
) -> None:
    for name in changed:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        with (project / name).open("a") as file:
            file.write("# changed\n")
    assert ran(project) == concerned
