"""Any strategy, cluster, model and parameters: a plan that is made gives the numbers of `transformers`.

All devices run in this process on real tensors, with the ledger of the real worlds, and messages arrive in
random order. Then once more, on devices with one byte less than that took: a planner may refuse, or find
another plan, but not make one that runs out of memory. What is drawn does not depend on the day: every run
of this test tries the same cases.
"""

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Literal, get_args, get_origin

import pytest
import torch
from annotated_types import Ge, Gt, Le, Lt
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.inputs.prompts import requests_of
from engine.models.reference import transformers_outputs
from engine.strategies.registry import STRATEGIES, drafted
from tests.support.memory_world import run_in_memory

FEW, MANY = 8, 60
"""Runs drawn of each strategy; `bench/fuzz` draws others."""
AMPLE_BYTES = 4e8
MODELS = [catalogue.resolve(row.name)[0] for row in catalogue.rows() if row.name.startswith("tiny-")]
"""Four heads, two KV heads at most and few layers: with seven workers, some have nothing to do."""


@st.composite
def clusters(draw):
    """One to seven workers, as unequal as they may be, in a star or in a row; the source anywhere. In half
    of the clusters they have memory for little more than their share of a model.
    """
    rates = [draw(st.sampled_from((1e9, 3e9, 1e10, 7e10))) for _ in range(draw(st.sampled_from(range(1, 8))))]
    sizes = draw(st.sampled_from((st.just(AMPLE_BYTES), st.integers(40_000, 250_000))))
    devices = [
        {"name": f"d{i}", "flop_per_s": rate, "memory_byte_per_s": 4 * rate, "memory_bytes": draw(sizes)}
        for i, rate in enumerate(rates)
    ]
    if draw(st.booleans()):
        devices.append(devices[0] | {"name": "term", "role": "terminal", "memory_bytes": AMPLE_BYTES})
    names = [device["name"] for device in devices]
    source = "term" if "term" in names else draw(st.sampled_from(names))
    if draw(st.booleans()):
        ends, switches = [("s1", name) for name in names], [{"name": "s1"}]
    else:
        ends, switches = list(pairwise(names)), []
    links = [{"a": a, "b": b, "bit_per_s": draw(st.sampled_from((1e6, 1e8)))} for a, b in ends]
    return ClusterSpec(name="drawn", source=source, devices=devices, switches=switches, links=links)


def values_of(field, cluster):
    """Values of one parameter: its choices, numbers near its bounds, names of workers. Often its default."""
    kind, default = field.annotation, field.get_default(call_default_factory=True)
    low = max(
        [bound.ge for bound in field.metadata if isinstance(bound, Ge)]
        + [bound.gt for bound in field.metadata if isinstance(bound, Gt)],
        default=None,
    )
    high = min(
        [bound.le for bound in field.metadata if isinstance(bound, Le)]
        + [bound.lt for bound in field.metadata if isinstance(bound, Lt)],
        default=None,
    )
    options = [st.just(default)]
    for one in get_args(kind) if get_origin(kind) not in (None, Literal) else (kind,):
        if get_origin(one) is Literal:
            options.append(st.sampled_from(get_args(one)))
        elif one is bool:
            options.append(st.booleans())
        elif one is int:
            first = 0 if low is None else int(low)
            options.append(st.integers(first, first + 8 if high is None else min(int(high), first + 8)))
        elif one is float:
            first = 0.0 if low is None else float(low)
            options.append(
                st.sampled_from(
                    [first + share * ((high or first + 2) - first) for share in (0.1, 0.5, 0.9, 1.0)]
                )
            )
        elif one is str:
            options.append(st.sampled_from([cluster.devices[rank].name for rank in cluster.workers]))
    return st.one_of(options)


def with_layers(model, num_layers):
    """`model` with another number of layers, all with a window if all had one, as a config can say it."""
    update, window = {"num_layers": num_layers}, model.sliding_window
    if window and len(window.layers) == model.num_layers:
        update["sliding_window"] = window.model_copy(update={"layers": tuple(range(num_layers))})
    return model.model_copy(update=update)


@st.composite
def runs(draw, chosen):
    """A spec that `chosen` says it supports, and whether it has no reason to refuse it."""
    cluster = draw(clusters())
    model = draw(st.sampled_from(MODELS))
    model = drafted(chosen, with_layers(model, draw(st.sampled_from((1, 2, 3, 5)))))
    assume(chosen.supports(cluster, model) is None)
    workload = Workload(
        prompt_tokens=draw(st.sampled_from((1, 3, 8, 13))) if model.reads_text else None,
        new_tokens=draw(st.sampled_from((1, 2, 4))) if model.causal else 0,
        requests=draw(st.sampled_from((1, 3))),
        pattern=draw(st.sampled_from(("sporadic", "bursty"))),
    )
    plain = draw(st.booleans())
    params = (
        {}
        if plain
        else {name: draw(values_of(field, cluster)) for name, field in chosen.Params.model_fields.items()}
    )
    if plain or draw(st.integers(0, 3)):  # mostly
        params |= chosen.lossless_params()
    model = drafted(chosen, model, params)
    spec = RunSpec(
        cluster=cluster, model=model, workload=workload, strategy=chosen.name, params=params, seed=5
    )
    ample = all(device.memory_bytes == AMPLE_BYTES for device in cluster.devices)
    return spec, plain and ample


@lru_cache(maxsize=1024)
def _answers(model, workload):
    """What `transformers` says: per request its logits [new_tokens, V], or an encoder's states [T, D]."""
    cluster = ClusterSpec(
        name="alone",
        source="d0",
        devices=[{"name": "d0", "flop_per_s": 1e9, "memory_bytes": 1e9, "memory_byte_per_s": 1e9}],
    )
    spec = RunSpec(cluster=cluster, model=model, workload=workload, strategy="single", seed=5)
    return transformers_outputs.compute(spec)


def plan_of(chosen, spec):
    """Raises `PlanError` or `SpecError` where `chosen` does."""
    params = chosen.Params.parse(spec.params, "parameters")
    counted = spec.workload.model_copy(update={"prompt_tokens": len(requests_of(spec)[0].tokens)})
    return chosen.plan(spec.cluster, spec.model, counted, params)


def check(spec, plan, lossy, seed):
    """Every request's logits within 1e-4 of the reference, relative to its largest; greedy tokens equal. Of a
    `lossy` run it is only checked that it ends. Returns the world that it ran in.
    """
    requests = requests_of(spec)
    plan.validate_cover(spec.model, len(requests[0].tokens), spec.workload.new_tokens > 0)
    travelled = Plan.model_validate_json(plan.model_dump_json())
    assert travelled == plan
    source, world = run_in_memory(spec, travelled, requests, seed)
    if lossy:
        return world
    expected = _answers(spec.model, spec.workload.model_copy(update={"pattern": "sporadic"}))
    for index in range(spec.workload.requests):
        if index in source.chosen:  # only ids reached the source
            assert torch.stack(source.chosen[index]).tolist() == expected[f"tokens.{index}"].tolist()
            continue
        if spec.workload.new_tokens:
            ours, theirs = torch.stack(source.logits[index]), expected[f"logits.{index}"]
            assert ours.argmax(dim=-1).tolist() == expected[f"tokens.{index}"].tolist()
        else:
            ours, theirs = source.states[index], expected[f"hidden.{index}"]
        assert ours.shape == theirs.shape
        assert float((ours - theirs).abs().max() / theirs.abs().max()) < 1e-4
    return world


def squeezed(spec, world):
    """The same run on devices that have one byte less than they just needed."""
    cluster = spec.cluster
    devices = tuple(
        device.model_copy(update={"memory_bytes": max(1.0, world.devices[rank].ledger.peak_bytes - 1.0)})
        for rank, device in enumerate(cluster.devices)
    )
    return spec.model_copy(update={"cluster": cluster.model_copy(update={"devices": devices})})


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are computed sooner by one thread, and always in the same order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    "examples",
    [FEW, pytest.param(MANY, marks=pytest.mark.long("engine", "tests/support"))],
    ids=["few", "many"],
)
@pytest.mark.parametrize("chosen", STRATEGIES, ids=lambda chosen: chosen.name)
def test_a_plan_of_any_run_gives_the_reference_s_numbers(chosen, examples):
    outcomes = Counter()

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(run=runs(chosen), seed=st.integers(0, 3))
    def every(run, seed):
        spec, must_work = run
        try:
            plan = plan_of(chosen, spec)
        except (PlanError, SpecError) as refusal:
            outcomes["refused"] += 1
            assert not must_work, f"{chosen.name} refuses its own defaults: {refusal}"
            return
        lossy = chosen.is_lossy(plan)
        world = check(spec, plan, lossy, seed)
        outcomes["lossy" if lossy else "lossless"] += 1
        spec = squeezed(spec, world)
        try:
            plan = plan_of(chosen, spec)
        except (PlanError, SpecError):
            return
        check(spec, plan, chosen.is_lossy(plan), seed)

    every()
    assert outcomes["lossless"] >= examples // 4, f"too few to prove anything: {dict(outcomes)}"
