"""What one emulation may take: its limits come from the environment, and what it hits is said."""

from types import SimpleNamespace
from typing import Any

import pytest

from emulator.host.memory import MemoryGroup, may_limit
from emulator.session import client, limits
from emulator.session.client import emulate
from emulator.session.limits import Guard, Limits, limits_here, number_from
from engine.domain.errors import HostError, RunError
from engine.models import catalogue
from tests.emulator.session.test_emulate import spec_for
from tests.support.small_clusters import star


def test_a_run_has_twelve_hours_and_four_fifths_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "machine_bytes", lambda: 10_000_000_000)
    assert limits_here() == Limits(43_200.0, 8_000_000_000)
    monkeypatch.setenv("LOOM_RUNS_AT_ONCE", "2")
    assert limits_here().memory_bytes == 4_000_000_000
    monkeypatch.setenv("LOOM_RUN_MEMORY_GB", "1.5")
    monkeypatch.setenv("LOOM_RUN_HOURS", "0.5")
    monkeypatch.setenv("LOOM_RUN_START_S", "90")
    assert limits_here() == Limits(1800.0, 1_500_000_000, 90.0)


@pytest.mark.parametrize("text", ["much", "0", "-3", "inf", "nan"])
def test_a_limit_that_is_no_positive_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LOOM_READY_S", text)
    with pytest.raises(HostError, match=r"LOOM_READY_S is .* expected a positive number"):
        number_from("LOOM_READY_S", 120.0)


def guard(now_s: list[float], exceeded: bool = False) -> Guard:
    group: Any = SimpleNamespace(is_exceeded=lambda: exceeded)
    return Guard(Limits(7200.0, 3_000_000_000), group, lambda: now_s[-1])


def test_an_emulation_ends_when_its_time_is_over_and_not_before() -> None:
    now_s = [50.0]
    watching = guard(now_s)
    now_s.append(50.0 + 7200.0)
    watching.check()
    now_s.append(50.0 + 7200.1)
    with pytest.raises(RunError, match="ended after 2 h"):
        watching.check()


def test_an_emulation_that_lacked_memory_says_how_much_it_might_have() -> None:
    with pytest.raises(RunError, match=r"more than 3\.0 GB of memory"):
        guard([0.0], exceeded=True).check()


@pytest.mark.root
def test_a_real_emulation_that_needs_more_memory_than_it_may_have_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not may_limit():
        pytest.skip("this machine does not let a process make control groups for memory")
    model, weights = catalogue.resolve("tinyllama-42m", "random")  # 168 MB of weights
    spec = spec_for(star(2)).model_copy(update={"model": model, "weights": weights})
    with monkeypatch.context() as foreseen:
        foreseen.setenv("LOOM_RUN_MEMORY_GB", "0.1")
        with pytest.raises(HostError, match=r"needs at least 8\d\d MB of memory: 2 devices .* 100 MB here"):
            emulate(spec, lambda events: None)
    monkeypatch.setattr(client, "MemoryGroup", lambda limit: MemoryGroup(100_000_000))  # nobody foresees this
    with pytest.raises(RunError, match=r"more than \d+\.\d GB of memory"):
        emulate(spec, lambda events: None)
