"""The command `edgeloom` before it carries out a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.outside import THIRDS, edgeloom, install, write_method


@pytest.mark.parametrize(("command", "imports"), [("up", False), ("worker", False), ("list", True)])
def test_a_server_and_its_workers_import_no_package_that_nobody_named(
    tmp_path: Path, command: str, imports: bool
) -> None:
    write_method(tmp_path, THIRDS + f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    install(tmp_path)
    assert edgeloom(tmp_path, command, "--help", path=str(tmp_path)).returncode == 0
    assert (tmp_path / "imported").exists() == imports
