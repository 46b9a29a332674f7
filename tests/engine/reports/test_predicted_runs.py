"""The fold on whole predicted runs: every strategy, two clusters, generating and encoding models."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

import topologies
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.reports.fold import fold
from engine.reports.perfetto import chrome_trace
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import STRATEGIES

Run = tuple[RunReport, list[Span | Mark]]


@pytest.fixture(
    scope="module",
    params=[
        (strategy, cluster, model, pattern)
        for strategy in STRATEGIES
        for cluster, model, pattern in (
            ("lab-3", "tiny-gpt2", "sporadic"),
            ("lab-4", "tiny-llama", "bursty"),
            ("lab-4", "tiny-bert", "bursty"),
        )
        if strategy.supports(topologies.load(cluster), catalogue.resolve(model, "random")[0]) is None
    ],
    ids=lambda param: "-".join((param[0].name, *param[1:])),
)
def run(request: pytest.FixtureRequest) -> Run:
    strategy, cluster, name, pattern = request.param
    params = {"draft_layers": 1} if strategy.drafts else {}
    model, weights = catalogue.resolve(name, "random")
    workload = Workload(prompt_tokens=9, new_tokens=4 if model.has_head else 0, requests=3, pattern=pattern)
    spec = RunSpec(
        cluster=topologies.load(cluster),
        model=model,
        weights=weights,
        workload=workload,
        strategy=strategy.name,
        params=params,
    )
    prepared = prepare(spec)
    trace, outcome = simulate(prepared)
    assert outcome.kind == "finished"
    return fold(spec, prepared.plan, trace, world="predicted", outcome=outcome), trace


def test_the_parts_of_the_latency_add_up(run: Run) -> None:
    report, _ = run
    parts = report.attribution.model_dump()
    assert sum(parts.values()) == pytest.approx(report.latency_s, rel=1e-9)
    assert parts["compute_s"] > 0
    assert (parts["link_s"] > 0) >= (len([d for d in report.devices if d.flops]) > 1)


def test_all_requests_are_answered_in_full(run: Run) -> None:
    report, _ = run
    assert [request.index for request in report.requests] == [0, 1, 2]
    assert {len(request.token_s) for request in report.requests} == {report.spec.workload.new_tokens}
    for request in report.requests:
        assert 0 < request.ttft_s <= report.latency_s
        assert list(request.token_s) == sorted(request.token_s)


def test_no_device_is_busier_than_the_run_is_long(run: Run) -> None:
    """Devices may still work a little after the source has its last token, not after the trace's end."""
    report, trace = run
    end_s = max(item.end_s for item in trace if isinstance(item, Span))
    for device in report.devices:
        assert device.busy_s + device.wait_s <= end_s * (1 + 1e-9)
        assert (device.flops > 0) == (device.busy_s > 0)
        assert device.peak_memory_bytes <= device.memory_bytes


def test_links_carry_every_sent_byte_once_per_hop(run: Run) -> None:
    report, trace = run
    cluster = report.spec.cluster
    sent = [item for item in trace if isinstance(item, Span) and item.kind == "send"]
    hops = sum(s.bytes * len(cluster.path(cluster.rank(s.device), cluster.rank(s.peer))) for s in sent)
    assert sum(link.bytes for link in report.links) == hops
    into_source: dict[str, int] = defaultdict(int)
    for span in sent:
        into_source[span.peer] += span.bytes
    (last_hop,) = (x for x in report.links if x.a == cluster.source and x.direction == "backward")
    assert last_hop.bytes == into_source[cluster.source]


def test_every_layer_was_computed_in_the_first_pass(run: Run) -> None:
    report, _ = run
    assert {row.layer for row in report.layers} == set(range(report.spec.model.num_layers))
    assert all(0 <= row.start_s < row.end_s for row in report.layers)


def test_the_perfetto_export_has_every_span_and_pairs_every_message(run: Run) -> None:
    report, trace = run
    events = json.loads(json.dumps(chrome_trace(report.spec.cluster, trace)))["traceEvents"]
    spans = [item for item in trace if isinstance(item, Span)]
    assert len([event for event in events if event["ph"] == "X"]) == len(spans)
    tails = [event["id"] for event in events if event["ph"] == "s"]
    heads = [event["id"] for event in events if event["ph"] == "f"]
    assert sorted(tails) == sorted(heads)
    assert len(set(tails)) == len(tails)
