"""One device: it is the one with which a request is fastest, of those that hold the model."""

from random import Random

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from tests.support.small_cases import GPT2, plan_of, spec_of, star


def drawn(seed):
    """Two to five unequal devices, perhaps with too little memory for the model; one to four requests."""
    random = Random(f"single/{seed}")
    number = random.randint(2, 5)
    devices = [
        {
            "name": f"d{i}",
            "role": "terminal" if i == 0 and random.random() < 0.3 else "worker",
            "flop_per_s": 10 ** random.uniform(9, 11),
            "memory_bytes": random.choice((8e9, 8e9, 60e6)),
            "memory_byte_per_s": 10 ** random.uniform(8.5, 10),
            "message_overhead_s": random.choice((0.0, 1e-4, 2e-3)),
        }
        for i in range(number)
    ]
    links = [
        {
            "a": f"d{i}",
            "b": "s1",
            "bit_per_s": 10 ** random.uniform(6, 9),
            "delay_s": random.choice((0.0, 1e-3, 1e-2)),
        }
        for i in range(number)
    ]
    switches = [{"name": "s1"}]
    cluster = ClusterSpec(name="drawn", source="d0", devices=devices, switches=switches, links=links)
    model = catalogue.resolve(random.choice(("gpt2", "demo-lm", "tinyllama-42m", "bert-base")), "random")[0]
    workload = Workload(
        prompt_tokens=random.choice((4, 32, 150)),
        new_tokens=random.choice((1, 3, 10)) if model.causal else 0,
        requests=random.choice((1, 4)),
        pattern=random.choice(("sporadic", "bursty")),
    )
    return RunSpec(cluster=cluster, model=model, workload=workload, strategy="single")


def latency_s(spec, **params):
    """Predicted; None where the model does not fit."""
    try:
        return predict(spec.model_copy(update={"params": params})).latency_s
    except PlanError:
        return None


@pytest.mark.parametrize("seed", range(60))
def test_no_other_device_is_more_than_five_percent_faster(seed):
    spec = drawn(seed)
    names = [device.name for device in spec.cluster.devices if device.role == "worker"]
    times = [time_s for name in names if (time_s := latency_s(spec, device=name)) is not None]
    own_s = latency_s(spec)
    assert (own_s is None) == (not times)
    assert own_s is None or own_s <= 1.05 * min(times)


def test_equal_devices_leave_the_work_to_the_source():
    assert plan_of(spec_of("single", GPT2, star([1e9] * 3, source=1))).layout.device == 1


def test_a_device_can_be_named_although_it_is_slower():
    cluster = star([1e12, 1e6])
    assert plan_of(spec_of("single", GPT2, cluster)).layout.device == 0
    assert plan_of(spec_of("single", GPT2, cluster, device="d1")).layout.device == 1
