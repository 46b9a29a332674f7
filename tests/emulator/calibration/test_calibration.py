"""A host becomes a profile and a device row."""

import json
import tomllib
from pathlib import Path

import pytest

import emulator.calibration.known as host
from emulator.calibration.device_row import device_row
from emulator.calibration.stopwatch import typical_s
from emulator.cli.calibrate_command import device_toml
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow, PackedRow, RuntimeCosts
from engine.domain.spec import RunSpec
from engine.models import catalogue
from engine.ops.cost import op_time_s
from engine.ops.kernels import product
from tests.support.small_clusters import star

PEAK, HALF = 50e9, 20.0


def profile(name: str = "somewhere") -> HostProfile:
    rows = (1, 16, 32, 64, 128, 256, 512)
    return HostProfile(
        host=name,
        products=tuple(MeasuredRow(rows=r, s_per_flop=(r + HALF) / (PEAK * r)) for r in rows),
        elementwise_s_per_element=1e-9,
        op_overhead_s=2e-6,
        memory_byte_per_s=1e10,
    )


def row() -> DeviceSpec:
    return device_row(profile(), 1e8)


def test_the_device_row_is_a_device_of_a_cluster_file() -> None:
    (table,) = tomllib.loads(device_toml(row()))["device"]
    assert DeviceSpec.parse(table, "row") == row()
    assert "measured" in table["source"] and table["basis"] == "calibrated"


def test_the_roofline_of_the_row_takes_the_times_of_the_table() -> None:
    for rows in (1, 16, 256, 512):
        for inner, cols in ((384, 384), (1024, 4096), (4096, 1024)):
            kernel = product(rows, inner, cols, 4)
            by_row, by_table = (
                op_time_s(row(), [kernel], profile(), model) for model in ("roofline", "measured")
            )
            assert by_row == pytest.approx(by_table, rel=0.02)


def test_the_row_has_the_times_of_packed_products() -> None:
    packed = tuple(
        PackedRow(rows=rows, s_per_flop=s_per_flop, bits=bits)
        for bits, one_row in ((8, 1e-10), (4, 0.8e-10))
        for rows, s_per_flop in ((1, one_row), (512, 0.5e-10))
    )
    made = HostProfile(**(profile().model_dump() | {"packed": packed}))
    found = device_row(made, 1e8)
    for bits in (8.0, 4.125):
        for rows in (1, 512):
            kernel = product(rows, 1024, 4096, 4, weight_bits=bits)
            by_row, by_table = (op_time_s(found, [kernel], made, model) for model in ("roofline", "measured"))
            assert by_row == pytest.approx(by_table, rel=0.02)


def test_the_row_has_what_the_runtime_costs() -> None:
    costs = RuntimeCosts(dispatch_s=1e-5, handover_s=2e-5)
    found = device_row(profile().model_copy(update={"runtime": costs}), 1e8)
    assert (found.dispatch_s, found.handover_s) == (1e-5, 2e-5)


def test_time_is_the_processors_own() -> None:
    def sleep() -> None:
        import time

        time.sleep(0.01)

    assert typical_s(sleep) < 0.005


def test_a_calibration_is_kept_per_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert host.known_calibration() is None
    file = host.calibration_file()
    file.parent.mkdir(parents=True)
    made = profile(host.host_name())
    file.write_text(Calibration(profile=made, device=device_row(made, 1e8)).to_json())
    known = host.known_calibration()
    assert known is not None
    assert known.profile == made
    other = profile("another processor")
    file.write_text(Calibration(profile=other, device=device_row(other, 1e8)).to_json())
    assert host.known_calibration() is None
    file.write_text(json.dumps({"profile": {}}))
    assert host.known_calibration() is None


def test_only_a_run_that_depends_on_the_host_needs_its_profile() -> None:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = RunSpec(cluster=star(2), model=model, weights=weights, strategy="gpipe")
    assert host.needs_profile(spec)
    assert host.needs_profile(spec.model_copy(update={"dilation": "native"}))
    assert not host.needs_profile(spec.model_copy(update={"dilation": 2.0}))
    assert host.needs_profile(spec.model_copy(update={"dilation": 2.0, "compute_model": "measured"}))
    assert not host.needs_profile(spec.model_copy(update={"profile": profile()}))


@pytest.mark.parametrize(
    ("processor", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\n", "AMD EPYC"),
        ("processor\t: 0\nCPU part\t: 0xd0b\n", "Raspberry Pi 5 Model B Rev 1.0"),
    ],
)
def test_a_board_whose_processor_has_no_name_is_called_as_its_firmware_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processor: str, name: str
) -> None:
    monkeypatch.setattr(host, "PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setattr(host, "BOARD", tmp_path / "model")
    host.PROCESSOR.write_text(processor)
    host.BOARD.write_bytes(b"Raspberry Pi 5 Model B Rev 1.0\0")
    assert host.host_name() == name
