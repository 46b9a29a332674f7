"""What the machine lacks is said in one sentence with its remedy."""

import io

import pytest

from emulator.cli.doctor import is_fit, show
from emulator.network.probe import Capabilities, Capability, probe
from engine.domain.errors import HostError


def machine(*items: Capability) -> Capabilities:
    return Capabilities(items, cores=2, memory_bytes=8_000_000_000, kernel="6.1", cgroup_version=2)


TC = Capability("tc", False, True, "tc shapes links", "apt-get install iproute2")
NETEM = Capability("netem", False, False, "the kernel's netem", "modprobe sch_netem")


def test_a_missing_need_is_one_sentence_with_a_remedy() -> None:
    with pytest.raises(HostError) as refused:
        machine(NETEM, TC).require()
    assert str(refused.value) == "This machine cannot emulate: tc shapes links. apt-get install iproute2"


def test_what_is_only_nice_to_have_stops_nothing() -> None:
    machine(NETEM).require()


def test_the_doctor_prints_every_capability_and_the_verdict() -> None:
    for items, verdict in (((NETEM,), "can emulate"), ((NETEM, TC), "cannot emulate")):
        out = io.StringIO()
        show(machine(*items), out)
        assert verdict in out.getvalue()
        assert "modprobe sch_netem" in out.getvalue()
        assert is_fit(machine(*items)) == (len(items) == 1)


@pytest.mark.root
def test_this_machine_has_what_the_tests_need() -> None:
    found = probe()
    found.require()
    assert found.cores >= 1
    assert found.cgroup_version in (1, 2)
