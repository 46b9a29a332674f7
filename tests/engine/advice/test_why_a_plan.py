"""The binding constraint of each device, on clusters where it is known, with figures worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.advice.assess import assess
from engine.advice.moves import moved, step_of
from engine.advice.values import Assessment, DeviceReason, Why
from engine.advice.why import explain
from engine.domain.by_hand import PlanByHand
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.plan import Slice
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.sizes import kv_bytes_per_row, weight_bytes
from engine.program.strategy import Params
from engine.runs.predict import predict
from engine.strategies.registry import by_rule, strategy

BOARD: dict[str, Any] = {
    "memory_bytes": 1e9,
    "memory_byte_per_s": 1e9,
    "flop_per_s": 2e9,
    "op_overhead_s": 0.0,
    "message_overhead_s": 0.0,
}
MODEL, WEIGHTS = catalogue.resolve("demo-lm")
LAYER_BYTES = sum(weight_bytes(MODEL, Slice(layer=0, part=part)) for part in ("attention", "ffn"))


def spec_of(strategy: str, new_tokens: int = 3, params: Any = None, **devices: dict[str, Any]) -> RunSpec:
    """demo-lm (6 layers, 8 heads) on boards with these differences; `rate` is that of the board's link."""
    rates = {name: own.pop("rate", 1e9) for name, own in devices.items()}
    cluster = ClusterSpec(
        name="boards",
        source=next(iter(devices)),
        devices=[{"name": name, **BOARD, **own} for name, own in devices.items()],
        switches=[{"name": "hub"}],
        links=[{"a": name, "b": "hub", "bit_per_s": rate} for name, rate in rates.items()],
    )
    work = Workload(prompt_tokens=8, new_tokens=new_tokens)
    return RunSpec(
        cluster=cluster,
        model=MODEL,
        weights=WEIGHTS,
        strategy=strategy,
        workload=work,
        params=params or by_rule(strategy),
    )


def why(spec: RunSpec) -> Why:
    return explain(spec, lambda specs: [assess(one) for one in specs])


def reason(found: Why, name: str) -> DeviceReason:
    return next(one for one in found.devices if one.device == name)


def test_a_full_device_says_what_one_layer_more_needs_and_would_save() -> None:
    # b computes four times as fast as a, and has memory for three layers and a half
    small = 3.5 * (LAYER_BYTES + 9 * kv_bytes_per_row(MODEL, MODEL.num_kv_heads)) + 30_000
    fast = {"flop_per_s": 8e9, "memory_byte_per_s": 4e9, "memory_bytes": small}
    found = why(spec_of("gpipe", params={"by": "flops"}, a={}, b=fast))
    b = reason(found, "b")
    assert b.binding == "memory"
    # memory is fullest in the prefill, with eight rows in the cache
    assert b.needs_bytes == pytest.approx(LAYER_BYTES + 8 * kv_bytes_per_row(MODEL, MODEL.num_kv_heads))
    assert b.free_bytes < b.needs_bytes
    assert b.sentence.startswith("Memory full: one layer more needs 1.25 MB, ")
    assert "; with it " in b.sentence
    assert reason(found, "a").binding == "compute"


def test_the_slow_stage_is_compute_and_a_layer_less_saves_its_difference() -> None:
    slow = {"flop_per_s": 5e8, "memory_byte_per_s": 2.5e8}
    found = why(spec_of("gpipe", new_tokens=30, params={"by": "even"}, a={}, b=slow))
    b = reason(found, "b")
    assert (found.objective, found.unit, b.binding) == ("per_token_s", "one layer", "compute")
    fewer = {"devices": [{"device": "a", "layers": 4}, {"device": "b", "layers": 2}]}
    even_s = predict(spec_of("gpipe", new_tokens=30, params={"by": "even"}, a={}, b=slow)).tpot_s or 0
    fewer_s = predict(spec_of("gpipe", new_tokens=30, params={"plan": fewer}, a={}, b=slow)).tpot_s or 0
    assert b.give is not None and b.give.taker == "a" and b.give.saved_s is not None
    assert b.give.saved_s == pytest.approx(even_s - fewer_s, rel=0.05) and b.give.saved_s > 0
    assert b.take is not None and b.take.saved_s == pytest.approx(-b.give.saved_s, rel=0.05)


def test_a_slow_link_is_named_with_its_share() -> None:
    found = why(spec_of("megatron", a={}, b={}, c={"rate": 1e6}))
    c = reason(found, "c")
    assert c.binding == "link"
    assert "Link: the link c--hub takes" in c.sentence
    assert reason(found, "b").binding in ("compute", "none")


def test_a_device_without_a_share_says_what_one_would_cost() -> None:
    """All layers on the slower board take what that board takes."""
    spec = spec_of("single", new_tokens=30, a={}, b={"memory_byte_per_s": 5e8, "flop_per_s": 1e9})
    found = why(spec)
    alone_b = predict(spec.model_copy(update={"params": {"device": "b"}}))
    alone_a = predict(spec)
    b = reason(found, "b")
    assert b.binding == "idle" and b.take is not None and b.take.saved_s is not None
    assert -b.take.saved_s == pytest.approx((alone_b.tpot_s or 0) - (alone_a.tpot_s or 0), rel=0.05)
    assert b.sentence.startswith("Idle: all layers of a here would cost")
    assert reason(found, "a").binding == "compute"


def test_loading_from_disk_binds_a_device_that_streams() -> None:
    slots = 2.4 * LAYER_BYTES + 5e5
    found = why(spec_of("pipeline_offload", a={"disk_byte_per_s": 1e7, "memory_bytes": 4e6 + slots}))
    assert reason(found, "a").binding == "load"


def test_every_prediction_is_asked_for_once() -> None:
    asked: list[RunSpec] = []

    def counted(specs: Any) -> list[Assessment]:
        asked.extend(specs)
        return [assess(one) for one in specs]

    unlike: dict[str, dict[str, Any]] = {"a": {}, "b": {"flop_per_s": 1e9}, "c": {"flop_per_s": 3e9}}
    explain(spec_of("gpipe", **unlike), counted)
    assert len({one.model_dump_json() for one in asked}) == len(asked) == 1 + 3 * 3 + 6


def test_devices_that_differ_by_name_alone_have_one_reason() -> None:
    asked: list[RunSpec] = []

    def counted(specs: Any) -> list[Assessment]:
        asked.extend(specs)
        return [assess(one) for one in specs]

    found = explain(spec_of("megatron", a={}, b={}, c={}, d={}), counted)
    b, c = reason(found, "b"), reason(found, "c")
    assert c == b.model_copy(update={"device": "c"})
    assert len(asked) < 1 + 4 * 3 + 12


def test_a_move_takes_from_one_device_what_it_gives_another() -> None:
    plan = PlanByHand.parse(
        {
            "devices": [
                {"device": "a", "heads": 5, "columns": 400},
                {"device": "b", "heads": 3, "columns": 240},
            ]
        },
        "plan",
    )
    step = step_of(MODEL, ("heads", "columns"), {})
    assert (step.amounts, step.words) == ({"heads": 1, "columns": 80}, "one head with 80 columns")
    after = moved(plan, step, "a", "c", "a")
    assert after is not None
    assert [(s.device, s.heads, s.columns) for s in after.devices] == [
        ("a", 4, 320),
        ("c", 1, 80),
        ("b", 3, 240),
    ]
    assert moved(plan, step, "c", "a", "a") is None


def test_a_strategy_that_takes_no_plans_made_by_hand_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(strategy("single")), "Params", Params)
    with pytest.raises(PlanError, match="single takes no plans made by hand, with which its own would"):
        explain(spec_of("single", a={}, b={}), lambda specs: [assess(spec) for spec in specs])
