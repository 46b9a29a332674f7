"""AdaptLink's coverage as a state: columns without a copy, new copies in the background, second failures."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import PeerFailed
from engine.domain.events import to_json
from engine.domain.scenario import DropDevice, Scenario
from engine.runs.predict import predict
from engine.strategies.adaptlink.coverage import Coverage
from engine.strategies.adaptlink.roles import ColumnShard, HeadShare
from tests.support.adaptlink_cases import run_dying, tight
from tests.support.small_cases import GPT2, plan_of

SPEC = tight(GPT2, 0.3, new_tokens=4)
"""d0 is the primary, d2 serves, d1 has the copy, d3 has room for another."""


def coverage_of(shards, backups, rooms, width=8, rest_bytes=0.0, heads=()):
    """`Coverage` of a layout with 8 blocks; a column takes one byte, and `rest_bytes` come with a piece."""
    layout = plan_of(SPEC).layout.model_copy(
        update={
            "shards": tuple(ColumnShard(*one) for one in shards),
            "backups": {rank: tuple(ColumnShard(*one) for one in pieces) for rank, pieces in backups.items()},
            "rooms_bytes": rooms,
            "column_bytes": 1.0,
            "rest_bytes": rest_bytes,
            "heads": heads,
            "grid": shards[-1][2] // width,
        }
    )
    return Coverage(layout)


def test_after_a_promotion_the_columns_have_no_copy_until_a_device_with_room_has_loaded_one():
    coverage = coverage_of([(0, 0, 24), (1, 24, 64)], {1: [(2, 24, 64)]}, {3: 50.0})
    assert coverage.fraction() == 1.0 and coverage.uncovered() == []
    coverage.lose(frozenset({1}))
    assert coverage.promote(ColumnShard(1, 24, 64), 1) == (ColumnShard(2, 24, 64),)
    assert coverage.fraction() == 0.0 and coverage.uncovered() == [(24, 64)] and coverage.epoch == 1
    assert coverage.wanted() == [ColumnShard(3, 24, 64)] and coverage.rooms_bytes == {3: 10.0}
    assert coverage.wanted() == [], "it is being loaded"
    assert coverage.fraction() == 0.0, "it is not there yet"
    assert coverage.arrived(ColumnShard(3, 24, 64))
    assert coverage.fraction() == 1.0 and coverage.epoch == 2


def test_a_device_is_never_the_copy_of_what_it_serves_itself():
    coverage = coverage_of([(0, 0, 32), (1, 32, 64)], {}, {1: 100.0})
    assert coverage.wanted() == []
    assert coverage_of([(0, 0, 32), (1, 32, 64)], {1: [(1, 32, 64)]}, {}).fraction() == 0.0
    coverage = coverage_of([(0, 0, 32), (1, 32, 48), (2, 48, 64)], {}, {1: 100.0, 2: 100.0})
    assert sorted(coverage.wanted()) == [ColumnShard(1, 48, 64), ColumnShard(2, 32, 48)]


def test_without_a_device_with_room_for_all_columns_several_load_blocks_of_them():
    coverage = coverage_of([(0, 0, 24), (1, 24, 64)], {}, {2: 20.0, 3: 30.0})
    assert coverage.wanted() == [ColumnShard(2, 24, 40), ColumnShard(3, 40, 64)]
    coverage.arrived(ColumnShard(3, 40, 64))
    assert coverage.uncovered() == [(24, 40)] and coverage.fraction() == pytest.approx(24 / 40)
    assert coverage.promote(ColumnShard(1, 24, 64), 1) is None, "not all columns have a copy"


def test_nobody_takes_the_place_of_a_device_with_heads_whose_cache_is_lost_with_it():
    one = {"shards": [(0, 0, 24), (1, 24, 64)], "backups": {1: [(2, 24, 64)]}, "rooms": {}}
    assert coverage_of(**one).promote(ColumnShard(1, 24, 64), 1) == (ColumnShard(2, 24, 64),)
    with_heads = coverage_of(**one, heads=(HeadShare(layer=0, device=1, start=0, stop=2),))
    assert with_heads.promote(ColumnShard(1, 24, 64), 1) is None


def test_a_copy_on_the_failed_device_itself_does_not_take_its_place():
    coverage = coverage_of([(0, 0, 24), (1, 24, 64)], {1: [(1, 24, 64), (2, 24, 40), (2, 40, 64)]}, {})
    pieces = (ColumnShard(2, 24, 40), ColumnShard(2, 40, 64))
    assert coverage.promote(ColumnShard(1, 24, 64), 1) == pieces


def test_a_copy_takes_the_room_of_its_columns_and_of_what_comes_with_a_piece():
    shards, copy = [(0, 0, 24), (1, 24, 64)], (24, 64)
    fits = coverage_of(shards, {}, {2: 49.0, 3: 50.0}, rest_bytes=10.0)
    assert fits.wanted() == [ColumnShard(3, *copy)], "40 columns and 10 bytes need 50"
    assert fits.rooms_bytes == {2: 49.0, 3: 0.0}


def test_columns_with_a_longer_copy_have_one_though_a_shorter_one_ends_before():
    coverage = coverage_of([(0, 0, 24), (1, 24, 64)], {1: [(2, 24, 56), (3, 32, 40)]}, {})
    assert coverage.uncovered() == [(56, 64)]


def test_a_copy_that_fails_with_its_device_or_is_not_completed_is_made_again():
    coverage = coverage_of([(0, 0, 24), (1, 24, 64)], {1: [(2, 24, 64)]}, {3: 40.0, 4: 40.0})
    assert coverage.lose(frozenset({2})) and coverage.fraction() == 0.0
    assert not coverage.lose(frozenset({2})), "nothing new"
    assert coverage.wanted() == [ColumnShard(3, 24, 64)]
    coverage.stopped(ColumnShard(3, 24, 64))
    assert coverage.wanted() == [ColumnShard(3, 24, 64)]
    coverage.lose(frozenset({2, 3}))
    assert not coverage.arrived(ColumnShard(3, 24, 64)), "its device has failed"
    assert coverage.wanted() == [ColumnShard(4, 24, 64)]


@given(st.lists(st.sampled_from([1, 2, 3, 4, 5]), unique=True, max_size=4), st.randoms())
def test_whatever_fails_all_columns_are_served_once_and_copies_are_elsewhere(failing, random):
    coverage = coverage_of(
        [(0, 0, 16), (1, 16, 40), (2, 40, 64)], {1: [(3, 16, 40)]}, {3: 20.0, 4: 30.0, 5: 24.0, 2: 25.0}
    )
    for rank in failing:
        coverage.lose(frozenset({rank}))
        for shard, pieces in coverage.serving.items():
            if any(piece.device == rank for piece in pieces) and coverage.promote(shard, rank) is None:
                return
        for copy in coverage.wanted():
            if random.random() < 0.7:
                coverage.arrived(copy)
        columns = sorted((piece.start, piece.stop) for piece in coverage.pieces)
        assert columns[0][0] == 16 and columns[-1][1] == 64
        assert all(a[1] == b[0] for a, b in pairwise(columns))
        assert not {piece.device for piece in coverage.pieces} & coverage.failed
        assert not {copy.device for copy in coverage.copies | coverage.loading} & coverage.failed
        assert all(room >= 0 for room in coverage.rooms_bytes.values())
        assert 0 <= coverage.fraction() <= 1


def test_a_second_failure_changes_no_bit_either_once_the_new_copy_is_there():
    undisturbed, world = run_dying(SPEC, {})
    epochs = set()
    for second in range(6, world.delivered, 3):
        try:
            source, dying = run_dying(SPEC, {2: 3, 1: second}, seed=second)
        except PeerFailed:
            continue  # the copy was not complete yet: the engine plans anew
        assert torch.equal(torch.stack(source.logits[0]), torch.stack(undisturbed.logits[0]))
        marks = [facts["epoch"] for name, facts in dying.devices[0].marks if name == "promoted"]
        epochs.add(tuple(marks))
    assert (1, 3) in epochs, "promoted, copied, promoted"


def events_of(spec, *drops):
    changes = tuple(DropDevice(at_s=at_s, device=device) for at_s, device in drops)
    events = []
    report = predict(spec.model_copy(update={"scenario": Scenario(changes=changes)}), events.append)
    assert report.outcome.kind == "finished", report.outcome.sentence
    return report, to_json(events)


def test_in_the_simulated_world_the_time_without_copy_is_that_of_loading_it_from_disk():
    spec = tight(GPT2, 0.3, new_tokens=40)
    half_s = predict(spec).latency_s / 2
    _, events = events_of(spec, (half_s, "d2"))
    marks = {event["name"]: event for event in events if event["type"] == "mark"}
    assert marks["promoted"]["facts"]["coverage"] == 0.0
    assert marks["promoted"]["facts"]["uncovered"] == [marks["promoted"]["facts"]["columns"]]
    assert marks["copied"]["facts"]["coverage"] == 1.0 and marks["copied"]["facts"]["device"] == 3
    loads = [event for event in events if event.get("kind") == "load" and event["device"] == "d3"]
    assert len(loads) == len(plan_of(spec).layout.split_layers)
    assert marks["promoted"]["time_s"] < loads[0]["start_s"] < loads[-1]["end_s"] < marks["copied"]["time_s"]
    assert [mark["facts"]["epoch"] for mark in (marks["promoted"], marks["copied"])] == [1, 2]


def test_when_the_only_copy_fails_the_run_goes_on_and_another_device_loads_one():
    spec = tight(GPT2, 0.3, new_tokens=40)
    half_s = predict(spec).latency_s / 2
    _, events = events_of(spec, (half_s, "d1"))
    names = [event["name"] for event in events if event["type"] == "mark" and event["device"] == "d0"]
    assert "promoted" not in names and "replanned" not in names
    assert names.index("copies_lost") < names.index("copy_begun") < names.index("copied")
