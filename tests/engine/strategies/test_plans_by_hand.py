"""Plans divided by hand: they run, they pass the checks of every plan, and a plan's division can be taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bench.fuzz.check import outputs_of
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import EdgeLoomError
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import editable_plan, predict, prepare
from engine.strategies.registry import strategy as named

BOARD = {"memory_bytes": 1e9, "memory_byte_per_s": 1e9, "flop_per_s": 2e9}


def spec_of(strategy: str, plan: dict[str, Any] | None = None, **more: Any) -> RunSpec:
    """demo-lm (6 layers, 8 heads, 640 columns) on three boards a, b and c; a has the prompt."""
    model, weights = catalogue.resolve("demo-lm")
    cluster = ClusterSpec(
        name="three",
        source="a",
        devices=[{"name": name, **BOARD} for name in "abc"],
        switches=[{"name": "hub"}],
        links=[{"a": name, "b": "hub", "bit_per_s": 1e8} for name in "abc"],
    )
    return RunSpec(
        cluster=more.pop("cluster", cluster),
        model=model,
        weights=weights,
        strategy=strategy,
        params={"plan": plan} if plan else {},
        workload=Workload(prompt_tokens=12, new_tokens=3),
        **more,
    )


def stages(**layers: int) -> dict[str, Any]:
    return {"devices": [{"device": name, "layers": n} for name, n in layers.items()]}


def shares(**given: tuple[int, int]) -> dict[str, Any]:
    rows = [{"device": name, "heads": heads, "columns": columns} for name, (heads, columns) in given.items()]
    return {"devices": rows}


def given(**by_device: dict[str, Any]) -> dict[str, Any]:
    return {"devices": [{"device": name, **units} for name, units in by_device.items()]}


def positions(**rows: int) -> dict[str, Any]:
    return {"devices": [{"device": name, "rows": n} for name, n in rows.items()]}


@pytest.mark.parametrize("strategy", ["gpipe", "edgeshard"])
@pytest.mark.parametrize("layers", [{"a": 1, "c": 3, "b": 2}, {"b": 6}, {"a": 6}, {"c": 5, "b": 1}])
def test_stages_are_those_that_were_given(strategy: str, layers: dict[str, int]) -> None:
    plan = prepare(spec_of(strategy, stages(**layers))).plan
    found = {"abc"[stage.device]: stage.num_layers for stage in plan.layout.stages}
    assert list(found.items()) == list(layers.items())
    of_layers = [work for work in plan.work if work.slice.part == "attention"]
    assert {name: sum(work.device == "abc".index(name) for work in of_layers) for name in layers} == layers


def test_shares_are_those_that_were_given_in_their_order_and_devices_without_one_take_no_part() -> None:
    plan = prepare(spec_of("megatron", shares(c=(5, 100), a=(3, 540)))).plan
    assert plan.layout.group == (2, 0)
    assert (plan.layout.heads, plan.layout.columns) == ((0, 5, 8), (0, 100, 640))
    assert predict(spec_of("megatron", shares(c=(5, 100), a=(3, 540)))).devices[1].flops == 0


def test_positions_are_divided_in_proportion_to_rows() -> None:
    plan = prepare(spec_of("voltage", positions(a=6, b=3, c=3))).plan
    assert [(shard.device, shard.size) for shard in plan.layout.shards] == [(0, 6), (1, 3), (2, 3)]


@pytest.mark.parametrize(
    ("strategy", "plan"),
    [
        ("gpipe", stages(a=1, b=4, c=1)),
        ("edgeshard", stages(c=4, b=2)),
        ("megatron", shares(a=(1, 600), b=(7, 40))),
        ("voltage", positions(a=1, c=11)),
        ("tpi_llm", shares(a=(1, 600), b=(7, 40))),
        ("mcu", shares(b=(4, 600), c=(4, 40))),
        (
            "galaxy",
            given(a={"heads": 2, "columns": 600, "rows": 1}, b={"heads": 6, "columns": 40, "rows": 3}),
        ),
        ("accelerate", {**stages(c=2, a=4), "head": "b"}),
        ("pipeline_offload", stages(a=1, c=5)),
        ("lime", {**stages(a=2, c=4), "segments": 2}),
        ("adaptlink", {**given(b={"columns": 192}, c={"columns": 448}), "split_layers": 4}),
    ],
)
def test_an_uneven_plan_gives_the_models_own_numbers(strategy: str, plan: dict[str, Any]) -> None:
    own = outputs_of(prepare(spec_of("single")))
    got = outputs_of(prepare(spec_of(strategy, plan)))
    assert own.keys() == got.keys()
    for name, expected in own.items():
        torch.testing.assert_close(got[name], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("strategy", "plan", "sentence"),
    [
        ("gpipe", stages(a=2, b=3), "divides 5 layers, and demo-lm has 6"),
        ("gpipe", stages(b=3, a=3), "a is the source and has layers that are not the first"),
        ("gpipe", stages(a=3, d=3), "no device d"),
        ("gpipe", {"devices": [{"device": "a", "layers": 3}] * 2}, "a is named twice"),
        ("gpipe", shares(a=(8, 640)), "plan: has heads"),
        ("megatron", shares(a=(4, 320), b=(3, 320)), "divides 7 attention heads, and demo-lm has 8"),
        ("megatron", shares(a=(4, 320), b=(4, 319)), "639 feed-forward columns, and demo-lm has 640"),
        ("voltage", positions(a=0), "gives no device any rows"),
        ("galaxy", given(a={"heads": 8, "columns": 640}), "gives no device any rows"),
        ("single", stages(a=3, b=3), "computes on one device"),
        ("mcu", shares(b=(4, 0), c=(4, 640)), "b leads c in the reduction tree and has no columns"),
        ("edgeformer", given(a={"layers": 6, "lent_heads": 9}), "a has memory for 8 heads"),
        ("edgeformer", given(a={"layers": 6, "helpers": ["a"]}), "is its own helper"),
        ("lime", {**stages(a=3, b=3), "segments": 4}, "segments is 4 .* a device has 3 layers"),
        ("lime", given(a={"layers": 6, "streams": ["layer"] * 7}), "streams 7 layers per stage"),
        ("adaptlink", given(a={"columns": 635}, b={"columns": 5}), "steps of 16"),
        ("adaptlink", {**given(a={"columns": 320}, b={"columns": 320}), "split_layers": 7}, "choose 1 to 6"),
    ],
)
def test_a_plan_that_is_none_is_refused_in_a_sentence(
    strategy: str, plan: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(EdgeLoomError, match=sentence):
        prepare(spec_of(strategy, plan))


def test_chips_that_compute_in_whole_numbers_cut_columns_between_scales_alone() -> None:
    """demo-lm has a scale for every 4 columns; 322 are eighty and a half of them."""

    def in_int8(*columns: int) -> RunSpec:
        spec = spec_of("mcu", shares(a=(4, columns[0]), b=(4, columns[1])))
        bits = {"weight_bits": 8.0, "activation_bits": 8}
        return spec.model_copy(update={"model": spec.model.model_copy(update=bits)})

    with pytest.raises(EdgeLoomError, match=r"cuts columns at 322, expected a multiple of 4"):
        prepare(in_int8(322, 318))
    halves = in_int8(320, 320)
    editable = editable_plan(halves, prepare(halves).plan)
    assert {unit.name: unit.step for unit in editable.units} == {"heads": 1, "columns": 4}
    floats = spec_of("mcu", shares(a=(4, 322), b=(4, 318)))
    editable = editable_plan(floats, prepare(floats).plan)
    assert {unit.name: unit.step for unit in editable.units} == {"heads": 1, "columns": 1}


@pytest.mark.parametrize(
    ("strategy", "plan"), [("gpipe", stages(b=6)), ("megatron", shares(a=(1, 40), b=(7, 600)))]
)
def test_a_plan_for_which_memory_is_short_is_refused_with_the_device(
    strategy: str, plan: dict[str, Any]
) -> None:
    cluster = spec_of(strategy).cluster
    small = cluster.devices[1].model_copy(update={"memory_bytes": 5e6})
    tight = cluster.model_copy(update={"devices": (cluster.devices[0], small, cluster.devices[2])})
    with pytest.raises(EdgeLoomError, match=r"b has memory for 3 layers|b needs"):
        prepare(spec_of(strategy, plan, cluster=tight))


def test_a_terminal_gets_no_share() -> None:
    cluster = spec_of("gpipe").cluster.without((1,))
    with pytest.raises(EdgeLoomError, match="b computes nothing"):
        prepare(spec_of("gpipe", stages(a=3, b=3), cluster=cluster))


@pytest.mark.parametrize("strategy", ["gpipe", "edgeshard", "megatron", "voltage"])
def test_the_division_of_a_plan_made_by_hand_again_gives_the_same_plan(strategy: str) -> None:
    plan = prepare(spec_of(strategy)).plan
    spec = spec_of(strategy)
    division = named(strategy).by_hand(spec.cluster, spec.model, plan).to_json()
    again = prepare(spec_of(strategy, division)).plan
    assert (again.holdings, again.work) == (plan.holdings, plan.work)


def test_after_a_failure_the_strategy_divides_among_the_devices_that_are_left() -> None:
    drop = Scenario(changes=(DropDevice(at_s=0.02, device="b"),))
    report = predict(spec_of("gpipe", stages(a=1, b=4, c=1), scenario=drop))
    assert report.outcome.kind == "finished"
    assert [recovery.replanned for recovery in report.recoveries] == [True]
