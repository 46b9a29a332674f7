"""Every strategy with every family, on three clusters: both worlds do the same operations, bytes and FLOPs,
and the real one gives the reference's tokens. Real processes and sockets on loopback, native speed.
"""

from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.events import to_json
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.sizes import kv_bytes_per_row
from engine.reports.fold import fold
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import STRATEGIES, drafted
from engine.strategies.registry import strategy as method_of
from engine.strategies.speculative.strategy import SpeculativeParams
from tests.support.few import few
from tests.support.operations import operations
from tests.support.spread import OWN, spread_params

pytestmark = pytest.mark.timeout(1200)  # the first test waits for all real runs

DEVICE = {"memory_bytes": 4e8, "memory_byte_per_s": 4e9, "flop_per_s": 1e10}


def cluster(name, rates, terminal=False):
    devices = [{"name": f"d{i}", **DEVICE, "flop_per_s": rate} for i, rate in enumerate(rates)]
    if terminal:
        devices.append({"name": "term", **DEVICE, "role": "terminal"})
    links = [{"a": device["name"], "b": "s1", "bit_per_s": 1e8} for device in devices]
    source = "term" if terminal else "d0"
    return ClusterSpec(name=name, source=source, devices=devices, switches=[{"name": "s1"}], links=links)


CLUSTERS = [
    cluster("equal", [1e10] * 3, terminal=True),
    cluster("uneven", [4e10, 1e10, 2.5e10, 3e9]),
    cluster("more-devices-than-heads", [1e10] * 6),
]
FAMILIES = {
    "tiny-gpt2": "decoder",
    "tiny-opt": "decoder",
    "tiny-bert": "encoder",
    "tiny-vit": "encoder",
    "tiny-llama": "grouped",
    "tiny-qwen3": "grouped",
    "tiny-gemma3": "grouped",
    "tiny-llava": "grouped",
    "tiny-gpt-oss": "mixture",
}
"""One for each way in which operations, messages and memory differ, and its kind: a decoder, one with grouped
keys and values, a mixture of experts, an encoder. Gemma 3 is for those with windows, norms of sums or heads
of a free size; `test_methods_by_family.py` has the others, in this process.
"""
WORKLOADS = {
    "one": {"requests": 1, "pattern": "sporadic"},
    "burst": {"requests": 3, "pattern": "bursty"},
}


LENDS = OWN["edgeformer"]
PARAMS = {
    "edgeformer": {"spread": LENDS, "lossy": {**LENDS, "t_max_mode": "ratio", "check": "paper"}},
    "edge_only": {"whole": {"bits": "none"}, "8bit": {"bits": "8"}, "4bit": {"bits": "4"}},
    "voltage": {
        "paper": {},
        "again": {"decode": "recompute", "repartition": True, "last_layer_rows": "needed"},
    },
}
"""Parameters of the strategies that would have too little to send, or be too exact, with their own."""


def variants_of(strategy):
    return PARAMS.get(strategy.name, {"": spread_params(strategy)})


def spec_of(strategy, family, cluster, workload, params=None):
    model, weights = catalogue.resolve(family, None)
    new_tokens, prompt_tokens = 4 if model.causal else 0, 11 if model.reads_text else None
    return RunSpec(
        cluster=cluster,
        model=drafted(method_of(strategy), model),
        weights=weights,
        strategy=strategy,
        dilation="native",
        seed=7,
        params=params or {},
        workload=Workload(prompt_tokens=prompt_tokens, new_tokens=new_tokens, **WORKLOADS[workload]),
    )


def features(case):
    """What the run of a strategy with its parameters shows, and of which some run must show each; and each
    family somewhere on every cluster, alone and in a burst.
    """
    strategy, family, cluster, workload, params = case
    of_strategy = {(strategy, str(params), one) for one in (FAMILIES[family], cluster.name, workload)}
    return of_strategy | {("any", family, cluster.name, workload)}


def more_features(case):
    """Every strategy with every family, and with every workload on every cluster, too."""
    strategy, family, cluster, workload, _ = case
    return features(case) | {(strategy, family), (strategy, cluster.name, workload)}


ALL = [
    (strategy.name, family, cluster, workload, params)
    for strategy in STRATEGIES
    for family in FAMILIES
    for cluster in CLUSTERS
    for workload in WORKLOADS
    for params in variants_of(strategy).values()
    if strategy.supports(cluster, drafted(strategy, catalogue.resolve(family, None)[0])) is None
]
CASES = list(few(ALL, features))
MORE = list(
    few(ALL, more_features, set().union(*map(more_features, ALL)).difference(*map(more_features, CASES)))
)
"""Those of the campaign."""
VARIANTS = {str(params): name for variants in PARAMS.values() for name, params in variants.items()}
BY_NAME = {
    "-".join((s, f, c.name, w, *([VARIANTS[str(p)]] if s in PARAMS else []))): (s, f, c, w, p)
    for s, f, c, w, p in [*CASES, *MORE]
}
NAMES = [
    pytest.param(name, marks=[] if case in CASES else pytest.mark.long("engine"))
    for name, case in BY_NAME.items()
]


@pytest.fixture(scope="session")
def real_runs(request, play_for_real):
    """All cases asked for."""
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    asked = {values["name"] for values in params if "name" in values}
    return play_for_real({name: spec_of(*case) for name, case in BY_NAME.items() if name in asked})


def decisions_of(trace):
    """What depended on data, as the real run went."""
    return {
        (mark["device"], mark["facts"]["decision"]): mark["facts"]["answer"]
        for mark in trace
        if mark.get("name") == "decided"
    }


class Simulated(NamedTuple):
    """What the tests compare: how a simulated run ended, its operations, the peak of each device's memory."""

    kind: str
    operations: Counter
    peak_bytes: dict[str, int]


@pytest.fixture(scope="session")
def simulated_run(real_runs):
    """name → the same run in the simulated world, given what the real one decided; each is simulated once."""

    @cache
    def simulated(name):
        prepared = prepare(spec_of(*BY_NAME[name]))
        trace, outcome = simulate(prepared, decisions=decisions_of(real_runs[name]["trace"]))
        report = fold(prepared.spec, prepared.plan, trace, world="predicted", outcome=outcome)
        peaks = {device.name: device.peak_memory_bytes for device in report.devices}
        return Simulated(outcome.kind, operations(to_json(trace)), peaks)

    return simulated


@pytest.mark.parametrize("name", NAMES)
def test_both_worlds_do_the_same_operations_bytes_and_flops(name, real_runs, simulated_run):
    simulated = simulated_run(name)
    real = operations(real_runs[name]["trace"])
    assert simulated.kind == "finished"
    assert simulated.operations - real == Counter() and real - simulated.operations == Counter()


@pytest.mark.parametrize("name", NAMES)
def test_the_real_world_finishes_with_the_tokens_and_logits_of_the_reference(name, real_runs):
    report = real_runs[name]["report"]
    assert report["outcome"]["kind"] == "finished", report["outcome"]["sentence"]
    correctness = report["correctness"]
    if report["plan"]["layout"].get("lossy"):
        assert correctness["lossy"]
        assert correctness["ok"] is None
        assert correctness["max_rel_error"] > 0
        assert (correctness["kl_mean"] is not None) == bool(report["spec"]["workload"]["new_tokens"])
        return
    assert correctness["ok"], correctness
    by_tokens = report["spec"]["strategy"] == "cloud_only" and report["spec"]["workload"]["new_tokens"]
    if by_tokens:
        assert correctness["token_identical"]
        assert "only tokens" in correctness["why"]
    else:
        assert correctness["max_rel_error"] < 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_both_ledgers_reach_the_same_peak(name, real_runs, simulated_run):
    """Requests that draft go side by side: whether one has dropped its refused rows when another one peaks
    depends, without a clock that paces them, on this machine.
    """
    real = {d["name"]: d["peak_memory_bytes"] for d in real_runs[name]["report"]["devices"]}
    simulated, spec = simulated_run(name).peak_bytes, spec_of(*BY_NAME[name])
    refused = 0
    if method_of(spec.strategy).drafts and spec.workload.requests > 1:
        row_bytes = kv_bytes_per_row(spec.model, spec.model.num_kv_heads) * spec.model.num_layers
        refused = spec.workload.requests * SpeculativeParams().draft_length * row_bytes
    assert simulated.keys() == real.keys()
    for device, peak_bytes in real.items():
        assert abs(simulated[device] - peak_bytes) <= refused, device
