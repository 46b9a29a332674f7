"""What a calibration takes from runs over links."""

from types import SimpleNamespace

import pytest

from emulator.calibration.shapes import SHORT
from emulator.session import link_messages
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow, RuntimeCosts

DEVICE = DeviceSpec(name="this-machine", flop_per_s=1e11, memory_bytes=1e9, memory_byte_per_s=1e10)
PROFILE = HostProfile(
    host="made",
    products=(MeasuredRow(rows=1, s_per_flop=1e-10),),
    elementwise_s_per_element=1e-9,
    op_overhead_s=1e-6,
    memory_byte_per_s=1e10,
    runtime=RuntimeCosts(cores=2),
)


def runtime_of(monkeypatch, byte_s):
    """The costs after messages of 1,000 and 2,000 bytes that took 100 us and 0.2 ns for each further byte."""
    over = link_messages.LinkCosts([(1000, 1e-4), (2000, 1e-4 + 2e-7)], [[]], 1.0, 3e-4, 5e-4, byte_s)
    monkeypatch.setattr(link_messages, "probe", lambda: SimpleNamespace(items=()))
    monkeypatch.setattr(link_messages, "with_message_work", lambda profile, rate, crowd_s: profile)
    monkeypatch.setattr(link_messages, "with_wakeup", lambda profile, few_s, many_s: profile)
    found = link_messages.with_link_messages(
        Calibration(profile=PROFILE, device=DEVICE), SHORT, lambda function, extent: over
    )
    assert found.profile.runtime.cores == 2
    assert found.device.byte_overhead_s == pytest.approx(found.profile.runtime.byte_s, rel=0.01)
    assert found.device.message_overhead_s == pytest.approx(found.profile.runtime.send_s, rel=0.01) != 0
    return found.profile.runtime


def test_the_work_of_a_byte_does_not_count_what_its_two_ends_pay_for(monkeypatch):
    costs = runtime_of(monkeypatch, 1.1e-9)
    assert costs.byte_s == pytest.approx(1e-10)
    assert costs.link_byte_s == pytest.approx(1.1e-9 - 2e-10)
