"""`loom predict` as a machine that was calibrated: here, or in a file from elsewhere."""

import json
from pathlib import Path

import pytest

import topologies
from engine.cli import main
from engine.cli.command import Environment
from engine.cli.commands import COMMANDS
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow

PREDICT = ["predict", "lab-3", "--model", "tiny-gpt2", "--weights", "random", "--strategy", "megatron"]
PROFILE = HostProfile(
    host="a board",
    products=(MeasuredRow(rows=1, s_per_flop=1e-9),),
    elementwise_s_per_element=1e-9,
    op_overhead_s=1e-6,
    memory_byte_per_s=1e10,
)
DEVICE = DeviceSpec(name="this-machine", flop_per_s=7e9, memory_bytes=1e9, memory_byte_per_s=1e9)
HERE = Environment(
    topologies.load,
    topologies.names,
    topologies.presets,
    with_profile=lambda spec: spec.model_copy(update={"profile": PROFILE}),
)
ELSEWHERE = Environment(topologies.load, topologies.names, topologies.presets)


def report(capsys: pytest.CaptureFixture[str], environment: Environment, *more: str) -> dict:
    assert main([*PREDICT, "--json", "-", *more], COMMANDS, environment) == 0
    return json.loads(capsys.readouterr().out)


def test_measured_predicts_where_this_host_is_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(capsys, HERE, "--compute-model", "measured")["spec"]["profile"]["host"] == "a board"
    assert main([*PREDICT, "--compute-model", "measured"], COMMANDS, ELSEWHERE) == 2
    assert "run ./loom calibrate" in capsys.readouterr().err


def test_a_profile_from_a_file_makes_every_device_that_machine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "board.json"
    file.write_text(Calibration(profile=PROFILE, device=DEVICE).to_json())
    once = report(capsys, ELSEWHERE, "--profile", str(file))
    assert {device["flop_per_s"] for device in once["spec"]["cluster"]["devices"]} == {7e9}
    slow = PROFILE.model_copy(update={"products": (MeasuredRow(rows=1, s_per_flop=1e-6),)})
    file.write_text(Calibration(profile=slow, device=DEVICE).to_json())
    assert report(capsys, ELSEWHERE, "--profile", str(file))["latency_s"] > 5 * once["latency_s"]


def test_a_file_that_is_no_profile_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, words in (("missing.json", "cannot be read"), ("wrong.json", "profile: missing")):
        (tmp_path / "wrong.json").write_text("{}")
        assert main([*PREDICT, "--profile", str(tmp_path / name)], COMMANDS, ELSEWHERE) == 2
        assert name in (told := capsys.readouterr().err) and words in told
