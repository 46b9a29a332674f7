"""The command `edgeloom` before it carries out a command."""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import edgeloom as package
from engine.domain.errors import HostError
from engine.models.inputs import library_tokenizer
from tests.devtools.rooms import ROOT
from tests.support.outside import THIRDS, edgeloom, install, keep_methods_apart, write_method


@pytest.mark.parametrize(("command", "imports"), [("up", False), ("worker", False), ("list", True)])
def test_a_server_and_its_workers_import_no_package_that_nobody_named(
    tmp_path: Path, command: str, imports: bool
) -> None:
    write_method(tmp_path, THIRDS + f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    install(tmp_path)
    assert edgeloom(tmp_path, command, "--help", path=str(tmp_path)).returncode == 0
    assert (tmp_path / "imported").exists() == imports


def test_the_version_is_that_of_the_project(tmp_path: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert package.__version__ == declared
    assert edgeloom(tmp_path, "--version").stdout == f"edgeloom {declared}\n"


def test_a_text_where_no_tokenizer_is_installed_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(library_tokenizer, "version", missing)
    with pytest.raises(HostError, match=r"by transformers, which is not installed: run .*--prompt-tokens"):
        library_tokenizer.library_tokenizer(str(tmp_path))


def test_a_class_is_taken_where_an_object_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_methods_apart(monkeypatch)
    write_method(tmp_path, THIRDS)
    monkeypatch.syspath_prepend(str(tmp_path))
    thirds = import_module("thirds").Thirds
    given = package.spec("lab-3", "tiny-gpt2", thirds, prompt_tokens=8, new_tokens=2)
    assert given == package.spec("lab-3", "tiny-gpt2", thirds(), prompt_tokens=8, new_tokens=2)
