"""Which packages set-up asks for, and of whom."""

from __future__ import annotations

import json
import re
import threading
import tomllib
from pathlib import Path

import pytest

from webapp.ops import debian, setup
from webapp.ops.debian import Package
from webapp.ops.places import FRONTEND, ROOT, OpsError

PRESENT = Package("present", lambda: True)
ABSENT = Package("absent-package", lambda: False)


def test_nothing_is_installed_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "run_logged", lambda *_, **__: pytest.fail("apt-get was called"))
    assert debian.install([PRESENT]) is False


def test_a_user_without_root_gets_the_list_of_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(debian.shutil, "which", lambda *_, **__: "/usr/bin/apt-get")
    with pytest.raises(OpsError, match=r"`sudo apt-get install absent-package`\.$"):
        debian.install([PRESENT, ABSENT])


def test_root_installs_only_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = []
    commands = []

    def run(title: str, command: tuple[str, ...], *_: object, **__: object) -> None:
        commands.append(command[-1])
        installed.append("late")

    late = Package("late", lambda: "late" in installed)
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian.shutil, "which", lambda *_, **__: "/usr/bin/apt-get")
    monkeypatch.setattr(debian, "run_logged", run)
    assert debian.install([PRESENT, late]) is True
    assert len(commands) == 1
    assert commands[0].endswith(" install --yes --no-install-recommends late")


def test_a_machine_without_apt_get_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian.shutil, "which", lambda *_, **__: None)
    with pytest.raises(OpsError, match="no apt-get to install them: absent-package"):
        debian.install([ABSENT])


@pytest.fixture
def without_installing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.debian, "install", lambda packages: False)
    monkeypatch.setattr(setup, "has_pip", lambda path: False)


def test_python_packages_and_front_end_are_set_up_beside_each_other(
    without_installing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=600)
    monkeypatch.setattr(setup, "_set_up_python", lambda **_: both.wait() >= 0)
    monkeypatch.setattr(setup, "set_up_frontend", lambda: both.wait() < 0)
    assert setup.set_up(redis=True) is True


def test_a_front_end_that_cannot_be_built_ends_the_set_up(
    without_installing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bool:
        raise OpsError("Front end build failed.")

    monkeypatch.setattr(setup, "_set_up_python", lambda **_: False)
    monkeypatch.setattr(setup, "set_up_frontend", fail)
    with pytest.raises(OpsError, match="Front end build failed"):
        setup.set_up(redis=True)


def test_every_package_that_set_up_installs_is_found_afterwards() -> None:
    """This machine was set up by `./loom test`: what it installs must be recognised."""
    assert debian.missing_of(debian.VENV_PACKAGES) == []
    assert debian.missing_of([*debian.EMULATOR_PACKAGES, *debian.REDIS_PACKAGES, *debian.TEST_PACKAGES]) == []


@pytest.mark.parametrize(
    ("node", "npm", "enough"),
    [
        ((20, 20, 2), (11, 19, 1), True),
        ((22, 12, 0), (11, 0), True),
        ((24, 1, 0), (11, 3), True),
        ((18, 19, 0), (11, 0), False),
        ((21, 7, 0), (11, 0), False),
        ((22, 11, 0), (11, 0), False),
        ((20, 20, 2), (10, 8), False),
        ((), (11, 0), False),
    ],
)
def test_only_a_node_that_can_build_the_front_end_is_used(
    node: tuple[int, ...], npm: tuple[int, ...], enough: bool
) -> None:
    assert setup.node_is_new_enough(node, npm) is enough


def pins(lock: Path) -> dict[str, str]:
    lines = [line for line in lock.read_text().splitlines() if line and not line.startswith(("#", "-r"))]
    return {normal(name): version for name, version in (line.split("==") for line in lines)}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", ["runtime", "dev"])
def test_every_wanted_package_is_pinned_in_the_lock(name: str) -> None:
    lines = (ROOT / "requirements" / f"{name}.in").read_text()
    wanted = re.findall(r"^([A-Za-z][\w.-]*)", lines, re.MULTILINE)
    pinned = pins(ROOT / "requirements" / "runtime.txt") | pins(ROOT / "requirements" / f"{name}.txt")
    assert {normal(package) for package in wanted} <= set(pinned)
    assert all(re.fullmatch(r"[0-9][\w.]*", version) for version in pinned.values()), "no local builds"


def test_redis_stays_below_8_because_newer_clients_drop_idle_sockets() -> None:
    assert int(pins(ROOT / "requirements" / "runtime.txt")["redis"].split(".")[0]) < 8


def test_the_front_end_lock_holds_hashes_and_no_addresses() -> None:
    packages = json.loads((FRONTEND / "package-lock.json").read_text())["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert not [name for name, package in packages.items() if name and "integrity" not in package]


def test_the_project_asks_for_the_python_that_loom_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "OLDEST_PYTHON = (3, 11)" in (ROOT / "loom").read_text()
