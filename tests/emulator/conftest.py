"""Every test has a state directory of its own, so that no test waits for another's run."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "state"
    monkeypatch.setenv("EDGELOOM_STATE_DIR", str(directory))
    return directory
