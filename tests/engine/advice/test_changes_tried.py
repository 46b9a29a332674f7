"""Single changes of a cluster: which are tried, what they change, and how their gains are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engine.advice.assess import assess
from engine.advice.candidates import candidates
from engine.advice.changes import best_of, ranked, tried
from engine.advice.values import Assessment, Limit
from engine.domain.cluster import ClusterSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue

BOARD = {"memory_bytes": 9e6, "memory_byte_per_s": 1e9, "flop_per_s": 2e9}


def base_of(names: str = "ab", **device: Any) -> RunSpec:
    model, weights = catalogue.resolve("demo-lm")
    cluster = ClusterSpec(
        name="some",
        source="a",
        devices=[{"name": name, **BOARD, **device} for name in names],
        switches=[{"name": "hub"}],
        links=[{"a": name, "b": "hub", "bit_per_s": 1e8, "delay_s": 1e-3} for name in names],
    )
    work = Workload(prompt_tokens=8, new_tokens=3)
    return RunSpec(cluster=cluster, model=model, weights=weights, strategy="single", workload=work)


def row(strategy: str, total_s: float | None, limit: Limit | None = None, **more: Any) -> Assessment:
    return Assessment(strategy=strategy, lossless=True, reason="r", total_s=total_s, limit=limit, **more)


def by_hand(seconds: Callable[[ClusterSpec], float]) -> Callable[[Sequence[RunSpec]], list[Assessment]]:
    """Assessments whose time depends on the cluster alone."""
    return lambda specs: [row(spec.strategy, seconds(spec.cluster)) for spec in specs]


SLOW_LINK = Limit(resource="link", name="b--hub", share_frac=0.9)


def test_gains_are_times_before_over_after_and_the_largest_comes_first() -> None:
    base = base_of()

    def seconds(cluster: ClusterSpec) -> float:
        faster = cluster.links[1].bit_per_s > 1e8 and cluster.links[0].bit_per_s == 1e8
        return 4.0 if faster else 20.0 if len(cluster.workers) < 2 else 10.0

    rows = [row("gpipe", 10.0, SLOW_LINK)]
    found = tried(base, rows, "total_s", by_hand(seconds))
    assert (found[0].kind, found[0].name, found[0].gain) == ("rate", "b--hub", 2.5)
    assert found[0].sentence == "Twice the rate of b--hub: 2.50 times as fast."
    assert (found[-1].kind, found[-1].gain) == ("fewer", 0.5)
    assert found[-1].sentence == "Without b: worse by 100%."
    assert {change.sentence for change in found[1:-2]} <= {
        "Half the delay of b--hub: no difference.",
        "Twice the rate of every link: no difference.",
    }


def test_more_tokens_a_second_are_a_gain() -> None:
    rows = [row("gpipe", 10.0, SLOW_LINK, tokens_per_s=2.0)]

    def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
        faster = [spec.cluster.links[1].bit_per_s > 1e8 for spec in specs]
        return [row("gpipe", 1.0, tokens_per_s=3.0 if each else 2.0) for each in faster]

    found = tried(base_of(), rows, "tokens_per_s", assess_all)
    assert found[0].gain == 1.5
    assert found[0].sentence.endswith("1.50 times as many tokens a second.")


def test_another_strategy_that_becomes_best_is_named() -> None:
    rows = [row("gpipe", 10.0, SLOW_LINK), row("megatron", 11.0)]

    def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
        faster = [spec.cluster.links[1].bit_per_s > 1e8 for spec in specs]
        return [
            row(spec.strategy, 5.0 if each and spec.strategy == "megatron" else 10.0)
            for spec, each in zip(specs, faster, strict=True)
        ]

    best = tried(base_of(), rows, "total_s", assess_all)[0]
    assert best.sentence == "Twice the rate of b--hub: 2.00 times as fast, with megatron."


def test_memory_that_lets_a_refused_strategy_in_is_found_by_real_predictions() -> None:
    base = base_of("a")
    rows = [assess(base.model_copy(update={"strategy": name})) for name in ("single", "gpipe")]
    assert best_of(rows, "total_s") is None
    found = tried(base, rows, "total_s", lambda specs: [assess(spec) for spec in specs])
    memory = next(change for change in found if change.kind == "memory")
    assert (memory.name, memory.gain, memory.before) == ("a", None, None)
    assert memory.sentence == "Twice the memory on a: single then has a plan, where now none has."


def test_lossy_strategies_are_not_called_best() -> None:
    lossy = row("edge_only", 1.0).model_copy(update={"lossless": False})
    assert best_of([lossy, row("single", 2.0)], "total_s") == row("single", 2.0)


def test_rows_are_ranked_best_first_and_those_without_a_plan_last() -> None:
    rows = [row("a", None), row("b", 2.0), row("c", 1.0)]
    assert [each.strategy for each in ranked(rows, "total_s")] == ["c", "b", "a"]
    fast = [row("a", 1.0, tokens_per_s=1.0), row("b", 1.0, tokens_per_s=9.0)]
    assert [each.strategy for each in ranked(fast, "tokens_per_s")] == ["b", "a"]


def test_equal_devices_on_equal_links_are_tried_once() -> None:
    cluster = base_of("abcd").cluster
    fewer = [each.name for each in candidates(cluster, []) if each.kind == "fewer"]
    assert fewer == ["b"]
    unequal = cluster.model_copy(
        update={
            "links": (
                *cluster.links[:2],
                cluster.links[2].model_copy(update={"bit_per_s": 1e6}),
                cluster.links[3],
            )
        }
    )
    assert [each.name for each in candidates(unequal, []) if each.kind == "fewer"] == ["b", "c"]


def test_one_device_more_has_a_new_name_and_links_like_its_model() -> None:
    cluster = base_of().cluster
    (more,) = (each for each in candidates(cluster, []) if each.kind == "more")
    assert [device.name for device in more.cluster.devices] == ["a", "b", "a-2"]
    assert more.cluster.links[-1] == cluster.links[0].model_copy(update={"a": "a-2"})


def test_a_cluster_of_one_device_gets_a_link_to_its_second() -> None:
    alone = ClusterSpec(name="one", source="a", devices=[{"name": "a", **BOARD}])
    (more,) = (each for each in candidates(alone, []) if each.kind == "more")
    assert [(link.a, link.b) for link in more.cluster.links] == [("a", "a-2")]


def test_a_changed_rate_changes_routes() -> None:
    """Two ways of two hops from a to d: by b at 10, by c at 8 Mbit/s, and then at 16."""
    rates = {("a", "b"): 10e6, ("b", "d"): 10e6, ("a", "c"): 8e6, ("c", "d"): 8e6}
    cluster = ClusterSpec(
        name="square",
        source="a",
        devices=[{"name": name, **BOARD} for name in "abcd"],
        links=[{"a": a, "b": b, "bit_per_s": rate} for (a, b), rate in rates.items()],
    )
    assert cluster.path(0, 3)[0].link == 0
    limit = Limit(resource="link", name="a--c", share_frac=0.5)
    changed = next(each for each in candidates(cluster, [row("gpipe", 1.0, limit)]) if each.kind == "rate")
    assert changed.cluster.path(0, 3)[0].link == 2


@pytest.mark.parametrize(("kind", "field"), [("speed", "flop_per_s"), ("memory", "memory_bytes")])
def test_a_device_is_doubled_in_the_field_that_is_said(kind: str, field: str) -> None:
    base = base_of()
    rows = [
        row(
            "gpipe",
            1.0,
            Limit(resource="compute", name="b", share_frac=1.0),
            peak_memory_frac=0.9,
            fullest="b",
        )
    ]
    changed = next(each for each in candidates(base.cluster, rows) if each.kind == kind and each.name == "b")
    before, after = base.cluster.devices[1], changed.cluster.devices[1]
    assert getattr(after, field) == 2 * getattr(before, field)
    assert changed.cluster.devices[0] == base.cluster.devices[0]
