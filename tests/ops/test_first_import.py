"""What set-up compiles: all packages that a run imports, as emulations cannot write where they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from webapp.ops import first_import

ROOT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_path("purelib"))


@pytest.mark.long(
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


def test_who_may_read_code_may_read_what_was_compiled_of_it_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that compiles closes what it makes, as the server's settings do."""
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path)
    names = {"open_to_all": 0o755, "closed_to_others": 0o700}
    for name, rights in names.items():
        package = tmp_path / name
        package.mkdir()
        code = package / "__init__.py"
        code.write_text("x = 1\n")
        for path, kept in ((package, rights), (code, rights & 0o666)):
            path.chmod(kept)
    monkeypatch.setattr(first_import, "PROGRAMS", tuple(names))
    before = os.umask(0o077)
    try:
        first_import.main()
    finally:
        os.umask(before)
        compiled = [Path(sys.modules.pop(name).__cached__) for name in names]
    rights_of = [[path.stat().st_mode & 0o777 for path in (one.parent, one)] for one in compiled]
    assert rights_of == [[0o755, 0o644], [0o700, 0o600]]
