"""What tests of experiments share: an installed method that is not EdgeLoom's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.strategies import outside, registry
from tests.support.outside import install, write_method


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with an installed method that this process knows, as the worker that expands an experiment."""
    folder = tmp_path / "site"
    write_method(folder)
    install(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("LOOM_METHODS", raising=False)
    rows, wrong = outside.installed_methods(set())
    assert not wrong
    thirds = rows["thirds"]
    monkeypatch.setitem(registry._BY_NAME, "thirds", thirds.method)
    monkeypatch.setitem(registry._OUTSIDE, "thirds", thirds)
    yield folder
