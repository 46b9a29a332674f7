"""The systemd units of docs/guides/operations.md: it accepts them, and they start what `./loom up` does."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from emulator.host.enter import NICENESS
from emulator.host.priority import LOOP_PRIORITY
from webapp.ops import services
from webapp.ops.places import PYTHON, ROOT

PLACE = "/opt/edgeloom"
DOCUMENT = (ROOT / "docs" / "guides" / "operations.md").read_text()
BLOCKS = re.findall(r"```ini\n# /etc/systemd/system/(\S+?\.service)(.*?)```", DOCUMENT, re.DOTALL)
UNITS = {name: text.partition("\n")[2] for name, text in BLOCKS}


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = str  # type: ignore[method-assign,assignment]
    read.read_string(UNITS[name])
    return read


def test_there_is_a_unit_for_the_server_and_one_for_all_workers() -> None:
    assert set(UNITS) == {"edgeloom-web.service", "edgeloom-worker@.service"}


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here: Debian's package systemd has it")
    file = tmp_path / name
    file.write_text(UNITS[name].replace(PLACE, str(ROOT)))
    done = subprocess.run(("systemd-analyze", "verify", str(file)), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_is_the_one_of_up_behind_a_proxy() -> None:
    """The document says when to add `--no-proxy-headers`."""
    command = shlex.split(unit("edgeloom-web.service")["Service"]["ExecStart"])
    program, *arguments = command
    assert Path(program.replace(PLACE, str(ROOT))) == PYTHON
    given = list(services.web().arguments)
    for option in ("--host", "--port"):  # their defaults
        at = given.index(option)
        del given[at : at + 2]
    given.remove("--no-proxy-headers")
    assert arguments == given
    assert "--no-proxy-headers" in DOCUMENT
    prepared = unit("edgeloom-web.service")["Service"]["ExecStartPre"]
    assert prepared.endswith("-m webapp.ops.prepare")


def test_workers_are_started_by_loom_for_every_queue() -> None:
    worker = unit("edgeloom-worker@.service")["Service"]
    program, *arguments = shlex.split(worker["ExecStart"])
    assert Path(program.replace(PLACE, str(ROOT))).stat().st_mode & 0o111
    assert arguments == ["worker", "--queue", "%i"]
    assert worker["User"] == unit("edgeloom-web.service")["Service"]["User"]  # emulating needs no root
    assert (int(worker["LimitRTPRIO"]), int(worker["LimitNICE"])) == (LOOP_PRIORITY, NICENESS)
    title = next(line for line in DOCUMENT.splitlines() if "edgeloom-worker@.service:" in line)
    assert all(f"@{queue}" in title for queue in services.QUEUES)


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_reads_the_settings_that_processes_share_and_comes_back(name: str) -> None:
    service = unit(name)["Service"]
    assert service["EnvironmentFile"] == "/etc/edgeloom.env" and service["Restart"] == "always"
    paragraph = DOCUMENT.partition("## With systemd")[2].partition("```")[0]
    assert all(f"`{setting}`" in paragraph for setting in services.SHARED_SETTINGS)
