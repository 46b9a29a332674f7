"""One unit of work moved from a device to another: who then has what, in which order."""

from __future__ import annotations

import pytest

from engine.advice.moves import PARTS_OF_ROWS, Step, moved, step_of
from engine.domain.by_hand import DeviceShare, PlanByHand
from engine.models import catalogue

LAYER, HEAD = Step({"layers": 1}, "one layer"), Step({"heads": 1, "columns": 32}, "one head with 32 columns")


def plan(**shares: dict[str, float]) -> PlanByHand:
    devices = [DeviceShare.model_validate({"device": name, **share}) for name, share in shares.items()]
    return PlanByHand(devices=tuple(devices))


def order(found: PlanByHand | None) -> list[tuple[str, int]]:
    assert found is not None
    return [(share.device, share.layers) for share in found.devices]


def test_a_layer_that_is_moved_leaves_the_giver_and_comes_to_the_taker() -> None:
    given = plan(a={"layers": 3}, b={"layers": 2})
    assert order(moved(given, LAYER, "a", "b", source="a")) == [("a", 2), ("b", 3)]


@pytest.mark.parametrize(
    ("taker", "source", "after"),
    [
        ("c", "a", [("a", 2), ("c", 1), ("b", 2)]),
        ("c", "c", [("c", 1), ("a", 2), ("b", 2)]),
    ],
    ids=["behind the giver", "the source before all"],
)
def test_a_device_without_a_share_takes_its_place(
    taker: str, source: str, after: list[tuple[str, int]]
) -> None:
    given = plan(a={"layers": 3}, b={"layers": 2})
    assert order(moved(given, LAYER, "a", taker, source)) == after


def test_a_giver_that_has_nothing_left_is_no_part_of_the_plan_any_more() -> None:
    assert order(moved(plan(a={"layers": 1}, b={"layers": 2}), LAYER, "a", "b", "a")) == [("b", 3)]


def test_nobody_gives_what_it_does_not_have() -> None:
    given = plan(a={"heads": 3, "columns": 20}, b={"heads": 0, "columns": 108}, c={"heads": 5})
    found = moved(given, HEAD, "a", "b", "a")
    assert found is not None
    assert [(one.heads, one.columns) for one in found.devices] == [(2, 0), (1, 128), (5, 0)]
    assert moved(given, LAYER, "a", "b", "a") is None
    assert moved(given, HEAD, "d", "b", "a") is None


def test_rows_are_moved_in_sixteenths_of_all_weights() -> None:
    found = moved(plan(a={"rows": 3.0}, b={"rows": 1.0}), Step({"rows": 1 / 16}, ""), "a", "b", "a")
    assert found is not None
    assert [one.rows for one in found.devices] == [2.75, 1.25]


def test_the_smallest_move_is_a_layer_a_head_with_its_columns_or_a_sixteenth() -> None:
    model = catalogue.resolve("tiny-gpt2")[0].model_copy(update={"num_heads": 4, "intermediate_size": 512})
    assert step_of(model, ["layers"], {}) == Step({"layers": 1}, "one layer")
    assert step_of(model, ["heads", "columns"], {"heads": 2}) == Step(
        {"heads": 2, "columns": 256}, "2 heads with 256 columns"
    )
    assert step_of(model, ["columns"], {}).amounts == {"columns": 512 // PARTS_OF_ROWS}
    assert step_of(model, ["columns"], {"columns": 24}).amounts == {"columns": 24}
    assert step_of(model, ["rows"], {}).amounts == {"rows": 1 / PARTS_OF_ROWS}
