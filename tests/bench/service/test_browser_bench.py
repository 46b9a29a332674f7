"""`./loom bench browser` measures the front end as it is in the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.service import browser
from bench.trials.isolated import Found
from webapp.ops import setup
from webapp.ops.steps import Step


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Step:
    """A build that copies its only source, in place of npm."""
    (tmp_path / "source").write_text("old")
    step = Step(
        title="Front end build",
        command=("cp", "source", "built"),
        stamp=tmp_path / "stamp",
        inputs=(tmp_path / "source",),
        outputs=(tmp_path / "built",),
        directory=tmp_path,
    )
    monkeypatch.setattr(setup, "frontend_steps", lambda environment: (step,))
    monkeypatch.setattr(setup, "node_environment", dict)
    monkeypatch.setattr("webapp.ops.steps.SETUP_DIR", tmp_path)
    return step


def test_a_front_end_that_is_older_than_its_sources_is_built_before_it_is_measured(
    build: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    built = build.outputs[0]

    def measured_now(module: str) -> Found:
        measured.append(built.read_text())
        return Found(())

    monkeypatch.setattr(browser, "found_by", measured_now)
    browser.measure_browser()
    build.inputs[0].write_text("new")
    browser.measure_browser()
    browser.measure_browser()
    assert measured == ["old", "new", "new"]
