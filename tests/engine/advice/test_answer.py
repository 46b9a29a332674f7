"""The advisor's sentence: yes or no against whole predictions, and the links' rate that changes a no."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from engine.advice.answer import answer
from engine.advice.assess import assess, assess_with_interval
from engine.advice.changes import ranked, told_once
from engine.advice.values import Answer, Assessment
from engine.domain.cluster import ClusterSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict

NAMES = ("single", "edgeshard", "megatron")
BOARD: dict[str, Any] = {
    "memory_bytes": 1e9,
    "memory_byte_per_s": 1e8,
    "flop_per_s": 1e11,
    "message_overhead_s": 0.0,
}


def base(bit_per_s: float, device: dict[str, Any] = BOARD, delay_s: float = 0.0, count: int = 4) -> RunSpec:
    model, weights = catalogue.resolve("demo-lm")
    names = "abcd"[:count]
    cluster = ClusterSpec(
        name="four",
        source="a",
        devices=[{"name": name, **device} for name in names],
        switches=[{"name": "hub"}],
        links=[{"a": name, "b": "hub", "bit_per_s": bit_per_s, "delay_s": delay_s} for name in names],
    )
    work = Workload(prompt_tokens=8, new_tokens=3)
    return RunSpec(cluster=cluster, model=model, weights=weights, strategy="single", workload=work)


@cache
def assessed(document: str) -> Assessment:
    return assess(RunSpec.model_validate_json(document))


def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
    return [assessed(spec.model_dump_json()) for spec in specs]


def asked(spec: RunSpec, names: Sequence[str] = NAMES, with_remedy: bool = True) -> Answer:
    specs = [spec.model_copy(update={"strategy": name}) for name in names]
    rows = told_once(ranked([assess_with_interval(one) for one in specs], "per_token_s"))
    return answer(spec, rows, "per_token_s", assess_all if with_remedy else None)


def test_four_boards_that_share_the_weights_are_faster_and_the_sentence_has_the_predictions() -> None:
    spec = base(1e9)
    found = asked(spec)
    one = predict(spec).tpot_s
    four = predict(spec.model_copy(update={"strategy": "megatron"})).tpot_s
    assert found.yes and found.strategy == "megatron"
    assert found.gain == pytest.approx(one / four, rel=0.02)
    assert found.sentence.startswith(f"Yes: megatron on all 4 devices is {one / four:.2g} times as fast as a")
    assert "because memory bandwidth binds" in found.sentence


def test_arithmetic_that_binds_is_named() -> None:
    found = asked(base(1e9, {**BOARD, "memory_byte_per_s": 1e11, "flop_per_s": 1e8}))
    assert found.yes and "because arithmetic binds" in found.sentence


def test_the_rate_that_a_no_names_makes_it_a_yes_and_a_tenth_less_does_not() -> None:
    found = asked(base(2e6))
    assert found.yes is False
    said = re.search(r"the links would need ([\d.]+) Mbit/s", found.sentence)
    assert said, found.sentence
    needed = 1e6 * float(said[1])
    assert asked(base(1.03 * needed), with_remedy=False).yes is True
    assert asked(base(0.87 * needed), with_remedy=False).yes is False


def test_a_no_is_said_where_every_method_leaves_all_devices_but_one_out() -> None:
    found = asked(base(2e6))
    assert found.sentence.startswith("No: every method that can run computes on a alone: ")
    assert found.sentence.endswith(", with megatron.")


def test_a_no_names_the_method_that_needs_the_slowest_links_also_where_another_uses_several() -> None:
    """DeepSpeed's own rule takes every device, whatever the links are."""
    found = asked(base(2e6), (*NAMES, "deepspeed"))
    assert found.yes is False and found.strategy == "deepspeed" and (found.gain or 0) < 1
    assert found.sentence.endswith(", with megatron.")


def test_a_delay_that_no_rate_mends_is_named() -> None:
    found = asked(base(1e9, delay_s=0.05))
    assert found.yes is False and "their delay would have to be smaller" in found.sentence


def test_a_model_that_no_single_board_holds_is_a_yes() -> None:
    found = asked(base(1e8, {**BOARD, "memory_bytes": 7e6}))
    assert found.yes and found.sentence.startswith("Yes: demo-lm fits no single device;")


def test_one_device_leaves_nothing_to_choose() -> None:
    spec = base(1e9)
    for others in ((1, 2, 3), (0, 2, 3)):  # also where the source is a terminal, which computes the head
        alone = spec.cluster.without(others)
        found = asked(spec.model_copy(update={"cluster": alone}))
        assert found.yes is None and found.sentence.startswith("There is one device to compute")


def test_boards_of_a_data_sheet_give_an_interval_and_say_whether_the_answer_holds() -> None:
    sheet = {**BOARD, "basis": "data sheet", "assumed_efficiency": 0.5}
    found = asked(base(1e9, sheet))
    assert "on real boards" in found.sentence and "0.5 to 2 times the prediction" in found.sentence
    assert "That holds however fast the boards are" in found.sentence
    near = asked(base(5.5e6, sheet), ("single", "deepspeed"))
    assert "If the boards are as" in near.sentence, "at this rate it depends on the boards"


def test_methods_that_come_to_the_same_plan_are_one_row() -> None:
    specs = [base(1e5).model_copy(update={"strategy": name}) for name in ("single", "edgeshard", "voltage")]
    rows = told_once([assess(one) for one in specs])
    assert [row.like for row in rows] == ["", "single", ""]
    assert rows[1].devices == ("a",), "at this rate edgeshard stays on one device"


def test_without_time_for_more_predictions_the_answer_is_the_same_without_its_remedy() -> None:
    spec = base(2e6)
    rows = told_once(
        ranked([assess(spec.model_copy(update={"strategy": name})) for name in NAMES], "total_s")
    )
    whole = answer(spec, rows, "total_s", assess_all)
    short = answer(spec, rows, "total_s", None)
    assert short.yes is whole.yes is False
    assert "would need" not in short.sentence and whole.sentence.startswith(short.sentence.rstrip("."))
