"""The advisor's figures against whole predictions, and its reasons on clusters with one obvious limit."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest

from engine.advice.assess import DRAFTED_TOKENS, assess
from engine.advice.limits import limit_of
from engine.advice.values import Assessment
from engine.domain.cluster import ClusterSpec
from engine.domain.model import with_draft
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.domain.workload import TracedRequest, Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.registry import by_rule

BOARD = {"memory_bytes": 1e9, "memory_byte_per_s": 1e9, "flop_per_s": 2e9, "watts": 2.0}
SMALL = {**BOARD, "memory_bytes": 7e6}


def spec_of(strategy: str, device: dict[str, Any] = BOARD, new_tokens: int = 3, **link: float) -> RunSpec:
    model, weights = catalogue.resolve("demo-lm")
    cluster = ClusterSpec(
        name="three",
        source="a",
        devices=[{"name": name, **device} for name in "abc"],
        switches=[{"name": "hub"}],
        links=[{"a": name, "b": "hub", "bit_per_s": 1e8, "j_per_byte": 1e-8} | link for name in "abc"],
    )
    work = Workload(prompt_tokens=8, new_tokens=new_tokens)
    return RunSpec(
        cluster=cluster,
        model=model,
        weights=weights,
        strategy=strategy,
        params=by_rule(strategy),
        workload=work,
    )


@pytest.mark.parametrize("strategy", ["single", "gpipe", "megatron", "voltage"])
def test_a_short_answer_has_the_figures_of_its_prediction(strategy: str) -> None:
    spec = spec_of(strategy)
    found, report = assess(spec), predict(spec)
    assert found.simulated_tokens == 3 and found.lossless
    assert found.first_token_s == pytest.approx(report.ttft_s)
    assert found.per_token_s == pytest.approx(report.tpot_s)
    assert found.total_s == pytest.approx(report.latency_s)
    assert found.tokens_per_s == pytest.approx(report.tokens_per_s)
    assert found.energy_j == pytest.approx(report.energy_j)
    assert found.link_bytes == sum(link.bytes for link in report.links)
    assert found.peak_memory_bytes == max(device.peak_memory_bytes for device in report.devices)


@pytest.mark.parametrize("strategy", ["single", "gpipe", "megatron"])
def test_a_long_answer_is_extrapolated_to_within_two_percent(strategy: str) -> None:
    spec = spec_of(strategy, new_tokens=40)
    found, report = assess(spec), predict(spec)
    assert found.simulated_tokens == 3
    assert found.total_s == pytest.approx(report.latency_s, rel=0.02)
    assert found.energy_j == pytest.approx(report.energy_j, rel=0.02)
    assert found.link_bytes == pytest.approx(sum(link.bytes for link in report.links), rel=0.02)
    peak_bytes = max(device.peak_memory_bytes for device in report.devices)
    assert found.peak_memory_bytes == pytest.approx(peak_bytes, rel=0.02)


def drafting(likely: float, **workload: Any) -> RunSpec:
    spec = spec_of("speculative", {**BOARD, "flop_per_s": 1e10})
    draft = spec.model.model_copy(update={"name": "draft", "num_layers": 1})
    update = {
        "model": with_draft(spec.model, draft, likely),
        "workload": Workload(prompt_tokens=8, **workload),
    }
    return spec.model_copy(update=update)


@pytest.mark.parametrize("likely", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("several", [{}, {"requests": 3, "pattern": "bursty"}], ids=["one", "burst"])
def test_an_answer_in_rounds_of_several_tokens_has_the_figures_of_its_prediction(
    likely: float, several: dict[str, Any]
) -> None:
    spec = drafting(likely, new_tokens=32, **several)
    found, report = assess(spec), predict(spec)
    assert found.per_token_s == pytest.approx(report.tpot_s, rel=0.02)
    assert found.total_s == pytest.approx(report.latency_s, rel=0.02)
    assert found.energy_j == pytest.approx(report.energy_j, rel=0.02)
    assert found.link_bytes == pytest.approx(sum(link.bytes for link in report.links), rel=0.02)
    assert found.limit is not None and found.limit.share_frac > 0.1


def test_what_comes_after_the_simulated_rounds_takes_what_they_do_on_average() -> None:
    spec = drafting(0.9, new_tokens=120, requests=3, pattern="bursty")
    found, report = assess(spec), predict(spec)
    assert found.simulated_tokens == DRAFTED_TOKENS // 3 < 120
    assert found.total_s == pytest.approx(report.latency_s, rel=0.1)
    assert found.energy_j == pytest.approx(report.energy_j, rel=0.1)


def test_a_burst_is_assessed_as_a_whole() -> None:
    spec = spec_of("gpipe")
    burst = spec.model_copy(
        update={"workload": Workload(prompt_tokens=8, new_tokens=3, requests=4, pattern="bursty")}
    )
    found, report = assess(burst), predict(burst)
    assert found.total_s == pytest.approx(report.latency_s)
    assert found.tokens_per_s == pytest.approx(12 / report.latency_s)


def test_one_of_several_sporadic_requests_is_assessed() -> None:
    several = spec_of("gpipe").model_copy(
        update={"workload": Workload(prompt_tokens=8, new_tokens=3, requests=5)}
    )
    assert assess(several).total_s == assess(spec_of("gpipe")).total_s


def test_requests_that_say_how_many_tokens_they_get_are_assessed_to_their_end_and_no_further() -> None:
    serves = Workload(
        prompt_tokens=8, new_tokens=40, requests=9, pattern="serve", max_batch=4, scheduler="fcfs"
    )
    service = spec_of("gpipe").model_copy(update={"workload": serves})
    found, report = assess(service), predict(service)
    assert len(report.requests) == 4, "the example that a service is predicted by"
    assert found.simulated_tokens == 3
    assert found.total_s == pytest.approx(report.latency_s, rel=0.02)
    assert found.tokens_per_s == pytest.approx(4 * 40 / report.latency_s, rel=0.02)
    rows = [TracedRequest(at_s=0.0, prompt_tokens=8, new_tokens=20)]
    rows.append(TracedRequest(at_s=9.0, prompt_tokens=8, new_tokens=40))
    traced = spec_of("gpipe").model_copy(update={"workload": Workload(pattern="trace", trace=tuple(rows))})
    assert assess(traced).total_s == pytest.approx(assess(spec_of("gpipe", new_tokens=20)).total_s)


def test_an_encoder_has_no_time_per_token() -> None:
    model, weights = catalogue.resolve("tiny-bert")
    update = {"model": model, "weights": weights, "workload": Workload(prompt_tokens=8, new_tokens=0)}
    found = assess(spec_of("gpipe").model_copy(update=update))
    assert (found.per_token_s, found.tokens_per_s) == (None, None)
    assert found.first_token_s == found.total_s


def test_a_refusal_is_the_reason_without_the_strategys_name() -> None:
    found = assess(spec_of("single", SMALL))
    assert found == Assessment(strategy="single", lossless=True, reason=found.reason)
    assert found.reason.startswith("a needs 10")


def test_a_strategy_that_does_not_support_the_cluster_says_why() -> None:
    reason = assess(spec_of("deepspeed")).reason
    assert "every device gets an equal shard" in reason and not reason.startswith("deepspeed")


def test_what_may_lose_quality_is_marked() -> None:
    assert not assess(spec_of("edgeformer")).lossless


@pytest.mark.parametrize(
    ("strategy", "device", "link", "sentence"),
    [
        ("single", BOARD, {}, r"Computes on a alone\.$"),
        ("megatron", BOARD, {"bit_per_s": 1e5}, r"Limited by the link .--hub, 100 kbit/s: "),
        ("megatron", BOARD, {"delay_s": 0.5}, r"Limited by the delay of .--hub, 500 ms: "),
        ("gpipe", {**BOARD, "flop_per_s": 1e6}, {}, "Limited by computing on a: "),
        (
            "tpi_llm",
            {**BOARD, "disk_byte_per_s": 1e4},
            {},
            r"Limited by loading weights from the disk of ., 10 kB/s: ",
        ),
        ("gpipe", {**BOARD, "staging_byte_per_s": 1e2}, {}, "Limited by copies between accelerator"),
    ],
)
def test_the_reason_names_what_limits(
    strategy: str, device: dict[str, Any], link: dict[str, float], sentence: str
) -> None:
    assert re.match(sentence, assess(spec_of(strategy, device, **link)).reason)


def test_a_device_or_link_that_is_worse_than_the_others_is_named() -> None:
    spec = spec_of("megatron")
    devices = list(spec.cluster.devices)
    devices[2] = devices[2].model_copy(update={"flop_per_s": 1e6})
    slow = spec.cluster.model_copy(update={"devices": tuple(devices)})
    found = assess(spec.model_copy(update={"cluster": slow}))
    assert found.limit is not None
    assert (found.limit.resource, found.limit.name) == ("compute", "c")
    assert found.limit.share_frac > 0.9


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        # of the second, the delays of the two links of the path are 0.4 s
        ("recv", ("link", 0.6)),
        ("send", ("link", 1.0)),
    ],
)
def test_who_receives_waits_for_the_delay_of_links_and_who_sends_for_their_rate_alone(
    kind: Literal["recv", "send"], limit: tuple[str, float]
) -> None:
    cluster = spec_of("gpipe", delay_s=0.2).cluster
    span = Span("a", kind, "x", 0, 0.0, 1.0, bytes=1000, payload_bytes=1000, peer="b", message=0)
    found = limit_of(cluster, [span], 0.0, 1.0)
    assert (found.resource, found.share_frac) == (limit[0], pytest.approx(limit[1]))


def test_a_papers_planner_says_what_the_best_one_would_give() -> None:
    spec = spec_of("megatron", bit_per_s=1e5)
    found = assess(spec)
    best = assess(spec.model_copy(update={"params": {"planner": "best"}}))
    assert found.total_s and best.total_s and found.total_s > 2 * best.total_s
    assert best.total_s < 0.005 * found.total_s, "which is never said to be all of the time"
    assert found.reason.endswith(" A better split (planner=best) would save 99 % of the time.")
    assert found.best_planner_s == best.total_s
    assert "planner=best" not in best.reason and best.best_planner_s is None
