"""A host becomes a profile and a device row."""

import json
import tomllib
from pathlib import Path

import pytest

import emulator.calibration.known as host
from emulator.calibration.calibrate import device_row
from emulator.calibration.roofline import Roofline, fit_roofline
from emulator.calibration.stopwatch import typical_s
from emulator.cli.commands import device_toml
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow
from engine.domain.spec import RunSpec
from engine.models import catalogue
from engine.ops.cost import elementwise, op_time_s, product
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


def test_the_fit_finds_the_roofline_that_made_the_figures() -> None:
    made = Roofline(PEAK, HALF, 8e9, 5e-6)
    device = DeviceSpec(name="made", memory_bytes=1e9, **made._asdict())
    kernels = [product(rows, 1024, 1024, 4) for rows in (1, 4, 16, 64, 256, 512)]
    kernels += [elementwise(rows, 1024, 4) for rows in (1, 512)]
    found = fit_roofline([(kernel, op_time_s(device, [kernel])) for kernel in kernels])
    assert found == pytest.approx(made, rel=0.01)


def test_the_device_row_is_a_device_of_a_cluster_file() -> None:
    device = device_row(profile(), 1e8)
    (row,) = tomllib.loads(device_toml(device))["device"]
    assert DeviceSpec.parse(row, "row") == device
    assert row["flop_per_s"] == pytest.approx(PEAK, rel=0.01)
    assert "measured" in row["source"]


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
    file.write_text(host.Calibration(made, device_row(made, 1e8)).to_json())
    known = host.known_calibration()
    assert known is not None
    assert known.profile == made
    other = profile("another processor")
    file.write_text(host.Calibration(other, device_row(other, 1e8)).to_json())
    assert host.known_calibration() is None
    file.write_text(json.dumps({"profile": {}}))
    assert host.known_calibration() is None


def test_only_a_run_that_depends_on_the_host_needs_its_profile() -> None:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    spec = RunSpec(cluster=star(2), model=model, weights=weights, strategy="gpipe")
    assert host.needs_profile(spec)
    assert not host.needs_profile(spec.model_copy(update={"dilation": 2.0}))
    assert host.needs_profile(spec.model_copy(update={"dilation": 2.0, "compute_model": "measured"}))
    assert not host.needs_profile(spec.model_copy(update={"profile": profile()}))
