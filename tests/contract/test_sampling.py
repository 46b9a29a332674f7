"""Tokens that are drawn at random: every method draws those of one device, and transformers' numbers, with
the draws repeated, give them too.
"""

from functools import cache, partial
from itertools import pairwise

import pytest

from bench.fuzz.check import check, outputs_of
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models.reference import teacher_forcing, transformers_outputs
from engine.reports.verify import emitted_in, judge
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.registry import drafted, strategy
from tests.contract.test_numbers import CLUSTERS, VARIANTS
from tests.engine.program.test_iterations import RUN
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import LLAMA

WAYS = {
    "temperature": {"temperature": 0.7},
    "top_k": {"temperature": 1.0, "top_k": 6},
    "top_p": {"temperature": 1.3, "top_p": 0.6},
    "both": {"temperature": 2.0, "top_k": 12, "top_p": 0.8},
}
TOKENS = 4


def spec_of(name, params, way, cluster="uneven", seed=5, dtype="float32", **workload):
    sizes = {"prompt_tokens": 7, "new_tokens": TOKENS, "requests": 3, "pattern": "bursty"} | workload
    if "trace" in sizes:
        lengths = ("prompt_tokens", "new_tokens", "requests")
        sizes = {name: value for name, value in sizes.items() if name not in lengths}
    return RunSpec(
        cluster=CLUSTERS[cluster],
        model=drafted(strategy(name), LLAMA.model_copy(update={"dtype": dtype})),
        strategy=name,
        params=params,
        workload=Workload.parse(sizes | WAYS.get(way, {}), "test"),
        seed=seed,
    )


@cache
def reference_of(way, seed=5):
    return transformers_outputs.reference_of(
        transformers_outputs.compute(spec_of("single", {}, way, seed=seed))
    )


CHOOSERS = [
    ("single", {}),
    ("megatron", {"head": "columns"}),
    ("megatron", {"head": "columns", "shares": "proportional"}),
    ("gpipe", {"head": "last"}),
    ("accelerate", {"device_map": "sequential"}),
    ("cloud_only", {}),
]
"""Where tokens are chosen: at the source, by parts, on the last stage, from another's logits, on a server."""
CASES = [
    *((name, params, way) for name, params in CHOOSERS for way in WAYS),
    *((name, params, tuple(WAYS)[at % len(WAYS)]) for at, (name, params) in enumerate(VARIANTS)),
]


@pytest.mark.parametrize(("name", "params", "way"), CASES)
def test_every_method_draws_the_tokens_of_transformers(name, params, way):
    spec = spec_of(name, params, way)
    got = outputs_of(prepare(spec))
    assert [tuple(ids) for ids in emitted_in(spec, got)] == list(reference_of(way).tokens)
    found = judge(spec, reference_of(way), got, False, partial(teacher_forcing.compute, spec))
    assert (found.ok, found.token_identical) == (True, True), found.why


def test_tokens_depend_on_the_seed_and_the_request():
    one = reference_of("temperature").tokens
    assert one != reference_of("temperature", seed=6).tokens
    greedy = transformers_outputs.reference_of(transformers_outputs.compute(spec_of("single", {}, "greedy")))
    assert one != greedy.tokens
    equal = [{"at_s": 0.0, "prompt_tokens": 2, "new_tokens": TOKENS, "tokens": (7, 8)}] * 3
    spec = spec_of("single", {}, "temperature", pattern="trace", trace=equal)
    assert len(set(map(tuple, emitted_in(spec, outputs_of(prepare(spec)))))) == 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheduler", ["continuous", "chunked"])
@pytest.mark.parametrize("name", [*RUN, "columns", "last"])
def test_who_joins_when_changes_no_drawn_token(name, scheduler, way):
    name, params = {"columns": ("megatron", {"head": "columns"}), "last": ("gpipe", {"head": "last"})}.get(
        name, (name, {})
    )
    rows = [{"at_s": 0.002 * i, "prompt_tokens": 3 + i % 3, "new_tokens": 2 + i % 2} for i in range(5)]
    chunks = {"chunk_tokens": 4} if scheduler == "chunked" else {}
    arriving = {"pattern": "trace", "trace": rows, "max_batch": 3}
    spec = spec_of(name, params, way, **arriving, scheduler=scheduler, **chunks)
    alone = spec_of("single", {}, way, cluster="alone", **arriving | {"max_batch": 1})
    assert emitted_in(spec, outputs_of(prepare(spec))) == emitted_in(alone, outputs_of(prepare(alone)))


@pytest.mark.parametrize("scheduler", ["fcfs", "continuous"])
@pytest.mark.parametrize("name", ["megatron", "gpipe"])
def test_each_request_of_a_service_is_drawn_in_its_own_way(name, scheduler):
    """Together in one batch, the same lengths: greedy, at a temperature, among the first, in a nucleus."""
    hows = [None, {"temperature": 0.9}, {"temperature": 1.0, "top_k": 4}, {"temperature": 1.0, "top_p": 0.5}]
    params = {"head": "columns" if name == "megatron" else "last"}
    for some in (hows, hows[:3], hows[:2]):
        rows = [
            {"at_s": 0.0, "prompt_tokens": 5, "new_tokens": 3, "sampling": how and {**how, "seed": 11}}
            for how in some
        ]
        served = {"pattern": "serve", "prompt_tokens": 5, "new_tokens": 3, "requests": 4}
        served |= {"max_batch": 4, "scheduler": scheduler}
        spec = RunSpec(
            cluster=CLUSTERS["uneven"],
            model=LLAMA,
            strategy=name,
            params=params,
            workload=Workload.parse(served | {"trace": rows}, "test"),
            seed=5,
        )
        reference = transformers_outputs.reference_of(transformers_outputs.compute(spec))
        assert [tuple(ids) for ids in emitted_in(spec, outputs_of(prepare(spec)))] == list(reference.tokens)


def test_a_prediction_counts_what_is_drawn_and_sent():
    """A device sends 8 bytes for each of its candidates, or its logits where a nucleus is cut; as many bytes
    as greedily where all tokens may be drawn.
    """
    params = {"head": "columns", "shares": "equal"}
    prepared = {way: prepare(spec_of("megatron", params, way, requests=1)) for way in ("greedy", *WAYS)}
    bounds = prepared["greedy"].plan.layout.vocabulary
    source = prepared["greedy"].spec.cluster.source_rank
    parts = [stop - start for at, (start, stop) in enumerate(pairwise(bounds)) if at != source]
    sent = {}
    for way, one in prepared.items():
        spans = [x for x in simulate(one)[0] if getattr(x, "kind", "") == "send" and x.name[:4] == "best"]
        sent[way] = sum(span.payload_bytes for span in spans)
    assert sent["greedy"] == sent["temperature"] == TOKENS * len(parts) * 8
    assert sent["top_k"] == TOKENS * sum(min(6, part) for part in parts) * 8
    assert sent["both"] == TOKENS * sum(min(12, part) for part in parts) * 8
    assert sent["top_p"] == TOKENS * sum(parts) * 4
    times = {way: predict(one.spec).latency_s for way, one in prepared.items()}
    assert times["greedy"] < times["temperature"] < times["top_k"]


def test_an_answer_that_goes_on_after_a_failure_gets_the_tokens_that_it_would_have_got():
    """A new plan starts with the prompt and the tokens so far."""
    spec = spec_of("megatron", {"head": "columns"}, "both")
    whole = list(reference_of("both").tokens)
    prepared = prepare(spec)
    so_far = [
        one.model_copy(update={"tokens": one.tokens + ids[:2], "emitted": 2})
        for one, ids in zip(prepared.requests, whole, strict=True)
    ]
    source, _ = run_in_memory(spec, prepared.plan, tuple(so_far))
    rest = [tuple(int(token) for token in source.chosen[index]) for index in range(3)]
    assert rest == [ids[2:] for ids in whole]


@pytest.mark.parametrize("head", ["source", "last"])
def test_a_request_is_proven_whole_of_which_only_some_steps_have_drawn_tokens_of_others(head):
    """The most likely tokens of one, beside which another's are drawn at random for a while."""
    rows = [
        {"at_s": 0.0, "prompt_tokens": 4, "new_tokens": 9},
        {"at_s": 1e-3, "prompt_tokens": 3, "new_tokens": 2, "sampling": {"temperature": 1.0, "seed": 3}},
    ]
    work = {"pattern": "trace", "trace": rows, "max_batch": 2, "scheduler": "continuous"}
    spec = spec_of("gpipe", {"head": head}, None, **work)
    assert check(spec).end == "equal", check(spec)
    assert len(emitted_in(spec, outputs_of(prepare(spec)))[0]) == 9
