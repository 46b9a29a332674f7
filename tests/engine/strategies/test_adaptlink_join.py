"""Devices that join AdaptLink: a faster one replaces a secondary, once; a slower one never does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.events import to_json
from engine.domain.scenario import DropDevice, JoinDevice, Scenario
from engine.runs.predict import predict
from engine.strategies.adaptlink.join import SWAP_MARGIN, roles_with, swaps, target_of
from engine.strategies.registry import strategy
from tests.support.adaptlink_cases import room_of, tight, with_memory
from tests.support.small_cases import GPT2, plan_of


def case(joiner_rate, secondary_rate=1e8, others=0.9, **more):
    """d0 primary, d1 its secondary; d2 with `joiner_rate` is not there yet. Spec, room and roles."""
    spec = tight(GPT2, 0.3, rates=(4e10, secondary_rate, joiner_rate), others=others, **more)
    before = spec.model_copy(update={"cluster": spec.cluster.without([2])})
    return spec, room_of(spec.cluster, GPT2, spec.workload), plan_of(before).layout.roles


def secondaries(roles):
    return [shard.device for shard in roles.shards[1:]]


def test_a_device_that_is_clearly_faster_becomes_secondary_and_the_other_its_backup():
    _, room, roles = case(joiner_rate=1e11)
    joined = roles_with(room, roles, 2)
    assert secondaries(roles) == [1] and secondaries(joined) == [2]
    assert joined.backups == {2: (roles.shards[1],)} and joined.coverage() == 1.0
    assert [shard[1:] for shard in joined.shards] == [shard[1:] for shard in roles.shards]


@given(st.floats(1e7, 1e12))
def test_a_device_is_replaced_at_most_once(rate):
    _, room, roles = case(joiner_rate=rate)
    joined = roles_with(room, roles, 2)
    again = roles_with(room, joined, 1 if secondaries(joined) == [2] else 2)
    assert secondaries(again) == secondaries(joined)


@pytest.mark.parametrize("rate", [1e7, 9.9e7, 1e8])
def test_a_slower_device_or_an_equal_one_becomes_a_backup(rate):
    _, room, roles = case(joiner_rate=rate)
    joined = roles_with(room, roles, 2)
    assert secondaries(joined) == [1]
    assert joined.backups == {1: (roles.shards[1]._replace(device=2),)}


@given(st.floats(1e-6, 1e3), st.floats(0.01, 3))
def test_the_margin_leaves_no_room_for_swapping_back(owner_s, factor):
    joiner_s = owner_s * factor
    assert swaps(joiner_s, owner_s) == (joiner_s < SWAP_MARGIN * owner_s)
    assert not (swaps(joiner_s, owner_s) and swaps(owner_s, joiner_s))


def test_the_margin_is_a_parameter():
    spec, _, roles = case(joiner_rate=1.07e8)
    chosen, before = strategy("adaptlink"), spec.model_copy(update={"cluster": spec.cluster.without([2])})
    plan = plan_of(before)
    assert plan.layout.roles == roles

    def after(margin):
        params = chosen.Params.parse(spec.params | {"swap_margin": margin}, "parameters")
        return chosen.replan(plan, spec.cluster, GPT2, spec.workload, params).layout.roles

    assert secondaries(after(0.9)) == [1] and secondaries(after(1.0)) == [2]


def test_a_shard_without_backup_comes_first_then_the_slowest_secondarys():
    spec = tight(GPT2, 0.7, rates=(4e10, 2e10, 1e10, 5e9), others=0.4)
    room, roles = room_of(spec.cluster, GPT2, spec.workload), plan_of(spec).layout.roles
    assert secondaries(roles)[:2] == [1, 2]
    slowest = next(shard for shard in roles.shards if shard.device == max(secondaries(roles)))
    bare = roles._replace(backups={})
    assert target_of(room, bare, 3) == slowest
    saved = roles._replace(backups={slowest.device: (slowest._replace(device=3),)})
    assert target_of(room, saved, 3) != slowest


def test_a_device_without_room_gets_nothing():
    spec, _, roles = case(joiner_rate=1e11)
    small = with_memory(spec.cluster, d2=1e3)
    assert roles_with(room_of(small, GPT2, spec.workload), roles, 2) == roles


def test_in_the_simulated_world_a_joiner_serves_from_the_new_plan_on():
    spec, _, _ = case(joiner_rate=1e11, new_tokens=6)
    d0_bytes = spec.cluster.devices[0].memory_bytes
    spec = spec.model_copy(update={"cluster": with_memory(spec.cluster, d0=d0_bytes + 4000)})
    at_s = predict(spec.model_copy(update={"cluster": spec.cluster.without([2])})).latency_s / 2
    spec = spec.model_copy(update={"scenario": Scenario(changes=(JoinDevice(at_s=at_s, device="d2"),))})
    events = []
    report = predict(spec, events.append)
    events = to_json(events)
    assert report.outcome.kind == "finished", report.outcome.sentence
    ffn = [event for event in events if event.get("kind") == "compute" and event["name"] == "ffn"]
    assert {event["device"] for event in ffn if event["token"] == 0} == {"d0", "d1"}
    assert {event["device"] for event in ffn if event["token"] == 5} == {"d0", "d2"}


def test_after_a_failure_or_on_request_everything_is_planned_anew():
    spec, _, _ = case(joiner_rate=1e11)
    chosen = strategy("adaptlink")
    before = plan_of(spec.model_copy(update={"cluster": spec.cluster.without([2])}))
    anew = plan_of(spec)

    def replanned(cluster, **params):
        parsed = chosen.Params.parse(spec.params | params, "parameters")
        return chosen.replan(before, cluster, GPT2, spec.workload, parsed)

    assert replanned(spec.cluster, replan_on_join=True) == anew
    assert replanned(spec.cluster).layout.shards[1][0] == 2
    assert replanned(spec.cluster).layout.shards[0] == before.layout.shards[0]
    assert replanned(spec.cluster.without([1])).layout.shards[1][0] == 2
    with pytest.raises(PlanError):
        replanned(spec.cluster.without([1, 2]))


def test_when_the_primary_fails_another_device_is_primary_and_every_request_ends():
    spec = tight(GPT2, 0.3, rates=(4e10, 1e10, 2e10), others=1.0, terminal=True, new_tokens=6, requests=2)
    spec = spec.model_copy(update={"cluster": with_memory(spec.cluster, d1=4e8, d0=4e8 + 1)})
    assert plan_of(spec).layout.primary == 0
    drop = DropDevice(at_s=predict(spec).latency_s / 2, device="d0")
    events = []
    report = predict(spec.model_copy(update={"scenario": Scenario(changes=(drop,))}), events.append)
    events = to_json(events)
    assert report.outcome.kind == "finished", report.outcome.sentence
    ends = [event for event in events if event.get("name") == "request_finished"]
    assert len(ends) == 2
