"""A virtual environment whose making was interrupted is made again, and a package that is half there, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from webapp.ops import environments
from webapp.ops.environments import has_pip, making, without_halves
from webapp.ops.places import VENV, OpsError


def test_an_environment_without_ensurepip_gets_pip_from_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without = {"ensurepip"}
    monkeypatch.setattr(
        environments.importlib.util, "find_spec", lambda name: None if name in without else object()
    )
    command = making(tmp_path)
    assert "--without-pip" in command[-1] and f"--target {tmp_path}/lib/python3." in command[-1]
    without.add("pip")
    with pytest.raises(OpsError, match="neither ensurepip nor pip, and an administrator can add"):
        making(tmp_path)


def test_an_environment_counts_once_pip_is_whole(tmp_path: Path) -> None:
    assert has_pip(VENV)
    subprocess.run([VENV / "bin" / "python", "-m", "venv", "--without-pip", tmp_path], check=True)
    assert not has_pip(tmp_path)


def test_an_environment_that_another_user_has_closed_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", closed)
    with pytest.raises(OpsError, match="another user's and closed to you: start EdgeLoom as that user"):
        has_pip(tmp_path)


def test_a_package_without_its_record_is_half_there(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name, complete in (("whole-1.dist-info", True), ("half-2.dist-info", False)):
        (packages / name).mkdir(parents=True)
        (packages / name / "METADATA").touch()
        if complete:
            (packages / name / "RECORD").touch()
    assert without_halves(tmp_path) == [packages / "half-2.dist-info"]
    assert without_halves(VENV) == []
