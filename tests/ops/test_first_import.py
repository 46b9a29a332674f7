"""What set-up compiles: all packages that a run imports, as emulations cannot write where they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_path("purelib"))

pytestmark = pytest.mark.long(
    "webapp/ops/first_import.py", "requirements", "engine/models/reference", "engine/models/families"
)


def test_a_run_imports_no_package_that_the_set_up_has_not_compiled(tmp_path: Path) -> None:
    """Both keep what they compile in a directory of their own, where the second would add what is missing."""
    compiled = tmp_path / "compiled"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(compiled)}

    def run(*arguments: str) -> None:
        command = (sys.executable, *arguments)
        subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)

    report = tmp_path / "report.json"
    wanted = ("--model", "demo-lm", "--strategy", "voltage", "--prompt", "A text", "--new-tokens", "2")
    run("loom", "predict", "lab-3", *wanted, "--json", str(report))
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(json.loads(report.read_text())["spec"]))
    run("-m", "webapp.ops.first_import")
    before = _packages_in(compiled)
    assert before
    run("-m", "engine.runs.local", str(spec))
    assert _packages_in(compiled) - before == set()


def _packages_in(compiled: Path) -> set[Path]:
    return set((compiled / PACKAGES.relative_to("/")).rglob("*.pyc"))
