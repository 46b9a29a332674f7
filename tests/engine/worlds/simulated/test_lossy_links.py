"""Messages over links that lose packets, in the simulated world."""

from itertools import pairwise

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import DropDevice, FreezeDevice, SetLoss
from engine.ops.tensors import Meta
from engine.runs.predict import prepare, simulate
from engine.worlds.simulated.tcp.round_trip import RTO_MIN_S
from tests.support.message_programs import receiver, run, sender, star, world_of
from tests.support.recovery_cases import halfway_s, spec_of


def lossy(loss_frac, **more):
    cluster = star(**more).model_dump()
    cluster["links"][0]["loss_frac"] = loss_frac
    return ClusterSpec.model_validate(cluster)


def arrivals(cluster, changes=(), count=20, seed=0):
    """When each of `count` messages of 1 s from a to b arrives, all sent at once."""
    world, trace = world_of(cluster, changes)
    world.network.seed = seed
    tags, times = [f"m{index}" for index in range(count)], {}
    run(world, (0, lambda c: sender(c, 1, tags)), (1, lambda c: receiver(c, [(0, t) for t in tags], times)))
    received = [span.message for span in trace if getattr(span, "kind", "") == "recv"]
    return [times[1, tag] for tag in tags], received


def test_lost_packets_make_messages_late_and_never_vanish():
    plain, _ = arrivals(star())
    late, received = arrivals(lossy(0.05))
    assert received == list(range(20))
    assert late == sorted(late)
    assert all(after >= before - 1e-9 for before, after in zip(plain, late, strict=True))
    assert late[-1] > plain[-1]


def test_a_loss_of_zero_changes_no_bit():
    assert arrivals(lossy(0.0, delay_s=0.01)) == arrivals(star(delay_s=0.01))


def test_the_same_seed_gives_the_same_times_and_another_seed_others():
    cluster = lossy(0.02, delay_s=0.01)
    assert arrivals(cluster, seed=1) == arrivals(cluster, seed=1)
    assert arrivals(cluster, seed=1) != arrivals(cluster, seed=2)


def test_a_loss_that_is_set_in_the_middle_holds_for_what_leaves_after_it():
    plain, _ = arrivals(star())
    late, _ = arrivals(star(), [SetLoss(at_s=5.5, link="a--s1", loss_frac=0.1)])
    assert late[:5] == plain[:5]
    assert late[19] > plain[19]
    healed, _ = arrivals(lossy(0.1), [SetLoss(at_s=0.0, link="a--s1", loss_frac=0.0)])
    assert healed == pytest.approx(plain)


def test_the_other_direction_keeps_its_loss():
    # only acknowledgements are lost: the next ones say the same
    change = SetLoss(at_s=0.0, link="a--s1", loss_frac=0.05, direction="backward")
    plain, _ = arrivals(star())
    backward, _ = arrivals(star(), [change])
    assert backward == pytest.approx(plain, rel=0.02)


def test_a_link_that_loses_everything_is_as_good_as_down_until_it_heals():
    changes = [SetLoss(at_s=0.5, link="a--s1", loss_frac=1.0), SetLoss(at_s=3.5, link="a--s1", loss_frac=0.0)]
    times, _ = arrivals(star(), changes, count=1)
    assert times == [pytest.approx(4.0)]


def test_a_message_behind_a_late_one_makes_it_less_late():
    async def ticks(ctx, tags):  # device c wakes a up again and again
        for tag in tags:
            await ctx.send(Meta((1, 5000)), 0, tag)  # 20 ms each

    async def stream(ctx, tags):
        for tag in tags:
            await ctx.recv(2, tag)
            ctx.send(Meta((1, 100)), 1, tag)

    tags = [f"m{index}" for index in range(200)]
    cluster = lossy(0.1)
    world, trace = world_of(cluster, holders=(0, 1, 2))
    times = {}
    run(
        world,
        (2, lambda c: ticks(c, tags)),
        (0, lambda c: stream(c, tags)),
        (1, lambda c: receiver(c, [(0, tag) for tag in tags], times)),
    )
    spans = [span for span in trace if getattr(span, "kind", "") == "recv" and span.device == "b"]
    took = [span.end_s - span.start_s for span in spans]
    assert sum(seconds > 0.015 for seconds in took) >= 10  # some frames were lost
    # a tenth of them was lost once more when they were sent again, and had to wait for a timer
    waited_s = [span.end_s for span in spans[:-1] if span.end_s - span.start_s > RTO_MIN_S]
    timers = 1 + sum(later - earlier > 2 * RTO_MIN_S for earlier, later in pairwise(waited_s))
    assert 1 <= timers <= 5


@pytest.mark.parametrize("change", [DropDevice, FreezeDevice])
def test_a_run_over_lossy_links_in_which_a_device_fails_is_finished_and_repeatable(change):
    spec = spec_of("gpipe", [change(at_s=halfway_s("gpipe"), device="c")])
    links = tuple(link.model_copy(update={"loss_frac": 0.1}) for link in spec.cluster.links)
    prepared = prepare(spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"links": links})}))
    trace, outcome = simulate(prepared)
    assert outcome.kind == "finished"
    assert simulate(prepared) == (trace, outcome)
