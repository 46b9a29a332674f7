"""After a failure no device runs out of memory where the new plan alone would fit."""

from random import Random

import pytest

from bench.fuzz.draw import draw_spec
from engine.domain.errors import EdgeLoomError
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.workload import Workload
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import strategy
from tests.support.recovery_cases import marks

SPLITTING = tuple(map(strategy, ("galaxy", "tpi_llm", "tpi_llm_offload", "megatron", "deepspeed")))
AMPLE_BYTES = 4e8
MOST_SPARE_FRAC = 0.2
FEW, MANY = 40, 240


def with_memory(spec, memory_bytes):
    devices = [
        device.model_copy(update={"memory_bytes": memory_bytes[device.name]})
        for device in spec.cluster.devices
    ]
    return spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": tuple(devices)})})


def without(spec, lost, prompt_tokens, new_tokens):
    """What is left to do on the other devices, as a run of its own."""
    left = Workload(prompt_tokens=prompt_tokens, new_tokens=new_tokens)
    return spec.model_copy(
        update={"cluster": spec.cluster.without([spec.cluster.rank(lost)]), "workload": left}
    )


def finished(spec):
    """The trace of a run; None if it cannot finish."""
    try:
        trace, outcome = simulate(prepare(spec))
    except EdgeLoomError:
        return None
    return trace if outcome.kind == "finished" else None


def peaks(trace, device):
    return max(
        (mark.facts["peak_bytes"] for mark in marks(trace, "memory") if mark.device == device), default=0
    )


def scarce_run(index):
    """A drawn run, the device it loses and when, with little more memory than each of its two plans needs;
    None if one of them does not run.
    """
    random = Random(f"scarce {index}")
    spec = draw_spec(11, index, SPLITTING)
    model, cluster = spec.model, spec.cluster
    others = [device.name for device in cluster.devices if device.name != cluster.source]
    if not (model.causal and model.has_head and model.reads_text and others):
        return None
    prompt, new = random.randint(2, 12), random.randint(3, 6)
    lost, kept = random.choice(others), random.randrange(1, new)
    spec = spec.model_copy(update={"workload": Workload(prompt_tokens=prompt, new_tokens=new)})
    ample = with_memory(spec, {device.name: AMPLE_BYTES for device in cluster.devices})
    whole = finished(ample)
    rest = whole and finished(without(ample, lost, prompt + new - 1, 1))
    if not rest:
        return None
    spare = 1 + random.uniform(0, MOST_SPARE_FRAC)
    spec = with_memory(
        spec,
        {
            device.name: max(peaks(whole, device.name), peaks(rest, device.name), 1) * spare
            for device in cluster.devices
        },
    )
    whole = finished(spec)
    if not whole or not finished(without(spec, lost, prompt + kept, new - kept)):
        return None
    emitted_s = sorted(mark.time_s for mark in marks(whole, "token_emitted"))
    change = DropDevice(at_s=emitted_s[kept - 1] + 1e-9, device=lost)
    return spec.model_copy(update={"scenario": Scenario(changes=[change])})


@pytest.mark.parametrize(
    "cases",
    [range(FEW), pytest.param(range(FEW, MANY), marks=pytest.mark.long("engine"))],
    ids=["few", "many"],
)
def test_a_run_whose_new_plan_fits_does_not_run_out_of_memory_after_a_failure(cases):
    specs = [spec for spec in map(scarce_run, cases) if spec is not None]
    assert len(specs) >= len(cases) // 6, "most cases were refused: draw others"
    for spec in specs:
        _, outcome = simulate(prepare(spec))
        assert outcome.kind != "out_of_memory", f"{spec.name}: {outcome.sentence}"
