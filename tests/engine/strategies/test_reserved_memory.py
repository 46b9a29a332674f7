"""Memory that the operating system keeps: no plan and no run has it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import OutOfMemory, PlanError
from engine.ops.sizes import model_bytes
from engine.strategies.registry import BUILT_IN
from tests.support.small_cases import GPT2, plan_of, play, spec_of, star, supported

KEPT = 2.0**20
RATES = (1e9, 2e9)
SHARES = (0.2, 0.5, 0.9, 1.2)
"""Usable memory of a device, as shares of the model: too little for some methods, and enough for others."""


def found_on(name: str, cluster: ClusterSpec) -> object:
    """The plan and the run, or why there is none."""
    spec = spec_of(name, GPT2, cluster, rows=8, new_tokens=6)
    try:
        plan = plan_of(spec)
    except PlanError as error:
        return str(error)
    try:
        return plan, play(spec, plan)
    except OutOfMemory as error:
        return plan, str(error)


@pytest.mark.parametrize(
    "name", [chosen.name for chosen in BUILT_IN if supported(chosen.name, star(RATES), GPT2)]
)
def test_a_device_whose_system_keeps_memory_is_as_one_without_that_memory(name: str) -> None:
    differing = 0
    for share in SHARES:
        usable = float(round(share * model_bytes(GPT2)))
        expected = found_on(name, star(RATES, memory_bytes=usable))
        kept = star(RATES, memory_bytes=usable + KEPT, reserved_bytes=KEPT)
        assert found_on(name, kept) == expected, share
        differing += found_on(name, star(RATES, memory_bytes=usable + KEPT)) != expected
    assert differing, "more memory would have changed nothing, so that this says nothing"


def test_a_run_has_not_the_memory_that_the_system_keeps() -> None:
    """Also where its plan did not know of it."""
    size = float(model_bytes(GPT2))
    free = spec_of("single", GPT2, star(RATES, memory_bytes=2 * size), rows=8, new_tokens=6)
    kept = star(RATES, memory_bytes=2 * size, reserved_bytes=1.5 * size)
    with pytest.raises(OutOfMemory):
        play(free.model_copy(update={"cluster": kept}), plan_of(free))


def test_a_device_needs_memory_beside_what_its_system_keeps() -> None:
    rates = {"name": "a", "flop_per_s": 1e9, "memory_byte_per_s": 1e9}
    device = DeviceSpec(**rates, memory_bytes=4e9, reserved_bytes=1.5e9)
    assert device.usable_bytes == 2.5e9
    with pytest.raises(ValidationError, match="reserved_bytes 4e\\+09 is not below memory_bytes 4e\\+09"):
        DeviceSpec(**rates, memory_bytes=4e9, reserved_bytes=4e9)
