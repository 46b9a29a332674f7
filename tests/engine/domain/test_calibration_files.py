"""A calibration travels as a file, and a cluster can be predicted as one of such machines."""

import json
from dataclasses import replace

import pytest

from engine.domain.calibration import LARGEST_FILE_BYTES, Calibration, cluster_of, parse_calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.host_times import HostProfile, MeasuredRow, RuntimeCosts
from engine.domain.rates import FormatRate
from engine.ops.cost import op_time_s
from engine.ops.kernels import elementwise, product
from tests.support.small_clusters import star

MACHINE = Calibration(
    profile=HostProfile(
        host="a board",
        products=(MeasuredRow(rows=1, s_per_flop=1e-9),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
        runtime=RuntimeCosts(dispatch_s=1e-5, slowdown=(1.0, 1.5, 3.0)),
    ),
    device=DeviceSpec(
        name="this-machine",
        flop_per_s=7e9,
        memory_bytes=1e9,
        memory_byte_per_s=1e9,
        dispatch_s=1e-5,
        basis="calibrated",
    ),
)


def test_a_calibration_survives_its_file() -> None:
    assert parse_calibration(MACHINE.to_json(), "x") == MACHINE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "x: is no JSON"),
        ("[" * 100_000, "x: is no JSON"),
        ("{}", "x, profile: missing"),
        (json.dumps({"profile": 3, "device": 4}), "x, profile"),
        (" " * (LARGEST_FILE_BYTES + 1), "at most 1,048,576"),
    ],
)
def test_what_is_no_calibration_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        parse_calibration(text, "x")


def test_a_cluster_of_such_machines_keeps_names_roles_memory_and_links() -> None:
    before = star(3)
    kept = tuple(device.model_copy(update={"reserved_bytes": 1e8}) for device in before.devices)
    before = before.model_copy(update={"devices": kept})
    after = cluster_of(before, MACHINE)
    assert after.links == before.links and after.source == before.source
    for old, new in zip(before.devices, after.devices, strict=True):
        assert (new.name, new.role, new.memory_bytes) == (old.name, old.role, old.memory_bytes)
        assert new.usable_bytes == old.usable_bytes
        assert (new.flop_per_s, new.dispatch_s, new.compute_model) == (7e9, 1e-5, "measured")


@pytest.mark.parametrize(("computing", "expected"), [(0, 1.0), (1, 1.0), (2, 1.5), (3, 3.0), (6, 6.0)])
def test_more_devices_than_were_measured_share_the_cores_further(computing: int, expected: float) -> None:
    assert MACHINE.profile.runtime.slowdown_of(computing) == pytest.approx(expected)


def test_a_device_as_in_runs_takes_as_many_times_longer_for_every_kind_of_kernel() -> None:
    runtime = MACHINE.profile.runtime.model_copy(update={"in_runs": 1.2})
    rate = FormatRate(bits=8, flop_per_s=6e9, memory_frac=0.5, basis="calibrated")
    machine = Calibration(
        profile=MACHINE.profile.model_copy(update={"runtime": runtime}),
        device=MACHINE.device.model_copy(update={"dispatch_s": 0.0, "format_rates": (rate,)}),
    )
    device = machine.as_in_runs().device
    packed = replace(product(512, 256, 256, 4), weight_bits=8.0)
    for kernel in (product(1, 256, 256, 4), product(512, 256, 256, 4), packed, elementwise(10, 1000, 4)):
        alone_s = op_time_s(machine.device, (kernel,))
        assert op_time_s(device, (kernel,)) == pytest.approx(1.2 * alone_s)
