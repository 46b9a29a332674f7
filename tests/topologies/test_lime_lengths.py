"""LIME's environments with the least memory that holds the model (its section V-A), 128 tokens in: who knows
how long answers become is not slower, and pipelines that compute tokens again have a plan.
"""

import pytest

import topologies
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict, prepare

WORSE = 1.005
LEAST = {
    "lime-e1": ("llama-2-13b", 0.562),
    "lime-e2": ("qwen3-32b", 0.599),
    "lime-e3": ("llama-3.3-70b", 0.816),
}
"""The model and the least share of the memory with which a pipeline holds it and 160 tokens of a burst."""


def spec_of(testbed, strategy, new_tokens, assumed_tokens=0, requests=1, share=None, **params):
    cluster = topologies.load(f"papers/{testbed}")
    name, holds = LEAST[testbed]
    devices = tuple(
        device.model_copy(update={"memory_bytes": (share or holds) * device.memory_bytes})
        for device in cluster.devices
    )
    model, weights = catalogue.resolve(name, "random")
    return RunSpec(
        cluster=cluster.model_copy(update={"devices": devices}),
        model=model,
        weights=weights,
        strategy=strategy,
        params=params,
        workload=Workload(
            prompt_tokens=128,
            new_tokens=new_tokens,
            assumed_tokens=assumed_tokens,
            requests=requests,
            pattern="bursty" if requests > 1 else "sporadic",
        ),
    )


@pytest.mark.long("engine", "topologies")
@pytest.mark.parametrize("testbed", LEAST)
def test_an_offloading_pipeline_that_knows_the_length_is_not_slower_than_one_that_assumes_160_tokens(testbed):
    known, assumed = (predict(spec_of(testbed, "pipeline_offload", 640, length)) for length in (0, 160))
    assert known.tpot_s <= WORSE * assumed.tpot_s


@pytest.mark.parametrize("strategy", ["gpipe", "edgeshard"])
@pytest.mark.parametrize("testbed", LEAST)
@pytest.mark.parametrize("is_burst", [False, True])
def test_pipelines_that_compute_tokens_again_have_a_plan_for_320_new_tokens(testbed, strategy, is_burst):
    requests = len(topologies.load(f"papers/{testbed}").devices) if is_burst else 1
    recompute = {"kv_pressure": "recompute", "planner": "paper"}
    spec = spec_of(testbed, strategy, 320, 160, requests, **recompute)
    kept_rows = prepare(spec).plan.layout.kv_rows
    assert kept_rows is None or 0 < kept_rows < 128 + 320 - 1
    assert not is_burst or kept_rows is not None, "the caches of a burst outgrow what is left"


@pytest.mark.long("engine", "topologies")
@pytest.mark.parametrize(("share", "least", "most"), [(0.45, 1.08, 1.12), (0.562, 0.999, 1.001)])
def test_kv_transfer_has_an_effect_on_e1_only_once_its_disks_are_waited_for(share, least, most):
    specs = [
        spec_of("lime-e1", "lime", 640, 160, share=share, planner="paper", kv_transfer=transfer)
        for transfer in (True, False)
    ]
    with_s, without_s = (predict(spec).tpot_s for spec in specs)
    assert least < without_s / with_s < most
