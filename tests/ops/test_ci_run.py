"""`.ci/run` in a small repository whose `loom` writes down how it was called."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CI_RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"
LOOM = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
home = Path.home()
given = {"arguments": sys.argv[1:], "home": str(home), "in_home": os.listdir(home), **os.environ}
(home / ".cache").mkdir(exist_ok=True)
with open("calls", "a") as calls:
    calls.write(json.dumps(given) + "\\n")
sys.exit("--long" in sys.argv and Path("fails").exists())
"""
AS_USER = "#!/bin/sh\ntouch emulated\n"
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit, beside a home with a configuration of npm and of pip."""
    folder, home = tmp_path / "project", tmp_path / "home"
    for path, text in (
        (folder / "loom", LOOM),
        (folder / ".ci" / "as-user", AS_USER),
        (folder / ".gitignore", "calls\nfails\nemulated\n"),
        (home / ".npmrc", "loglevel=warn\n"),
        (home / ".config" / "pip" / "pip.conf", "[global]\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for program in (folder / "loom", folder / ".ci" / "as-user"):
        program.chmod(0o755)
    shutil.copy(CI_RUN, folder / ".ci" / "run")
    subprocess.run((*GIT, "init", "-q"), cwd=folder, check=True)
    commit(folder)
    return folder


def commit(project: Path) -> str:
    subprocess.run((*GIT, "add", "."), cwd=project, check=True)
    subprocess.run((*GIT, "commit", "-q", "--allow-empty", "-m", "more"), cwd=project, check=True)
    return commit_of(project, "HEAD")


def commit_of(project: Path, name: str) -> str:
    said = subprocess.run(
        (*GIT, "rev-parse", "-q", "--verify", name), cwd=project, capture_output=True, text=True
    )
    return said.stdout.strip()


def played(project: Path) -> tuple[int, list[dict]]:
    """The exit status of `.ci/run`, and its calls of `loom`."""
    (project / "calls").unlink(missing_ok=True)
    left_out = (
        "PIP_CONFIG_FILE",
        "PIP_CACHE_DIR",
        "NPM_CONFIG_USERCONFIG",
        "npm_config_cache",
        "XDG_CONFIG_HOME",
    )
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {
        "HOME": str(project.parent / "home"),
        "XDG_CACHE_HOME": "/nowhere",
    }
    done = subprocess.run((project / ".ci" / "run",), env=environment, capture_output=True, check=False)
    return done.returncode, [json.loads(line) for line in (project / "calls").read_text().splitlines()]


def test_home_and_its_cache_are_empty_and_gone_afterwards(project: Path) -> None:
    status, calls = played(project)
    assert status == 0
    assert calls[0]["in_home"] == []
    assert calls[0]["home"] != str(project.parent / "home")
    assert "XDG_CACHE_HOME" not in calls[0]
    assert not Path(calls[0]["home"]).exists()


def test_pip_and_npm_keep_their_configuration_and_what_they_have_downloaded(project: Path) -> None:
    home = project.parent / "home"
    _, (call, *_) = played(project)
    assert call["PIP_CONFIG_FILE"] == str(home / ".config" / "pip" / "pip.conf")
    assert call["NPM_CONFIG_USERCONFIG"] == str(home / ".npmrc")
    assert (call["PIP_CACHE_DIR"], call["npm_config_cache"]) == ("/nowhere/pip", str(home / ".npm"))


def test_campaigns_are_asked_for_the_changes_since_the_last_commit_that_passed(project: Path) -> None:
    first = commit_of(project, "HEAD")
    assert [call["arguments"] for call in played(project)[1]] == [["test"], ["test", "--long"]]
    commit(project)
    assert played(project)[1][1]["arguments"] == ["test", "--long", "--changed-since", first]


def test_a_commit_that_fails_is_not_the_last_that_passed(project: Path) -> None:
    first = commit_of(project, "HEAD")
    played(project)
    (project / "fails").touch()
    commit(project)
    assert played(project)[0] != 0
    assert commit_of(project, "refs/edgeloom/passed") == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_also_emulates_as_an_ordinary_user(project: Path) -> None:
    assert played(project)[0] == 0
    assert (project / "emulated").exists()
