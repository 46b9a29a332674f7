"""Random clusters and runs on which methods are compared with each other, in the simulated world.

The models are as wide as real ones, but have few layers to be cheap. Devices have plain memory (no part of it
on chip, no staging copies), because a bound between two methods is one of the same hardware.
"""

from functools import lru_cache
from random import Random

from bench.fuzz.clusters import AMPLE_BYTES, draw_cluster
from engine.domain.errors import EdgeLoomError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import drafted, strategy

NAMES = ("gpt2", "demo-lm", "tinyllama-42m", "bert-base", "tiny-llama", "llama-2-7b")
LAYERS = 5
PLENTY_BYTES = 4e11


@lru_cache(maxsize=1)
def models():
    found = (catalogue.resolve(name, "random")[0] for name in NAMES)
    return tuple(model.model_copy(update={"num_layers": min(model.num_layers, LAYERS)}) for model in found)


def drawn_run(seed, index):
    """A spec of strategy `single`; `with_strategy` gives it another one."""
    random = Random(f"methods/{seed}/{index}")
    model = random.choice(models())
    cluster = draw_cluster(random, model)
    devices = tuple(_plain(device) for device in cluster.devices)
    workload = Workload(
        prompt_tokens=random.choice((8, 32, 100)),
        new_tokens=random.choice((1, 3, 6)) if model.causal else 0,
        requests=random.choice((1, 1, 3)),
        pattern=random.choice(("sporadic", "bursty")),
    )
    cluster = cluster.model_copy(update={"devices": devices})
    return RunSpec(cluster=cluster, model=model, workload=workload, strategy="single")


def _plain(device):
    scarce = device.role == "worker" and device.memory_bytes != AMPLE_BYTES
    return device.model_copy(
        update={
            "on_chip_weight_bytes": None,
            "staging_byte_per_s": None,
            "memory_bytes": device.memory_bytes if scarce else PLENTY_BYTES,
        }
    )


def with_strategy(spec, name, **params):
    model = drafted(strategy(name), spec.model, params)
    return spec.model_copy(update={"strategy": name, "params": params, "model": model})


@lru_cache(maxsize=1000)
def _seconds(document):
    try:
        report = predict(RunSpec.model_validate_json(document))
    except EdgeLoomError:
        return None
    return report.latency_s if report.outcome.kind == "finished" else None


def seconds(spec, name, **params):
    """The predicted latency with that strategy; None where it has no plan or does not finish."""
    return _seconds(with_strategy(spec, name, **params).model_dump_json())


def best_single_s(spec):
    """The least time of one worker that computes alone; None where the model fits on none."""
    names = [spec.cluster.devices[rank].name for rank in spec.cluster.workers]
    found = [seconds(spec, "single", device=name) for name in names]
    return min((found_s for found_s in found if found_s is not None), default=None)


def grown(spec, what, factor):
    """The same run where all devices have `factor` times the memory or speed, or all links the bandwidth."""
    cluster = spec.cluster
    if what == "bandwidth":
        links = tuple(_times(link, factor, "bit_per_s", "reverse_bit_per_s") for link in cluster.links)
        cluster = cluster.model_copy(update={"links": links})
    else:
        fields = {
            "memory": ("memory_bytes",),
            "speed": ("flop_per_s", "memory_byte_per_s", "disk_byte_per_s"),
        }[what]
        devices = tuple(_times(device, factor, *fields) for device in cluster.devices)
        cluster = cluster.model_copy(update={"devices": devices})
    return spec.model_copy(update={"cluster": cluster})


def _times(value, factor, *fields):
    known = {field: getattr(value, field) for field in fields}
    return value.model_copy(update={field: old * factor for field, old in known.items() if old is not None})
