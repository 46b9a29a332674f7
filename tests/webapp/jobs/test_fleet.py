"""Several machines: what workers announce, who may work, who can do which run, and when it may start."""

from __future__ import annotations

import math
import os
import pwd
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from emulator.host.places import queue_name
from emulator.session.turns import turn
from engine.runs.predict import prepare, simulate
from engine.worlds.real.dilation import CAUTIOUS, demands
from engine.worlds.simulated import kernel
from tests.support.web import Browser, recorded, request_body, run_spec
from webapp.base.redis import client
from webapp.jobs import announcement as fleet
from webapp.jobs import release, workers
from webapp.jobs.announcement import Announcement, Holder
from webapp.jobs.calibration import Calibrating
from webapp.jobs.need import Need, reason_against
from webapp.operations import machines
from webapp.runs import predictions, tasks, waiting
from webapp.runs.models import Run
from webapp.runs.predictions import cores_for, need_of
from webapp.runs.waiting import Ongoing

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
ANN, BOB = (workers.Identity(f"emulate@{name}", f"home-of-{name}", 7, 70) for name in ("ann", "bob"))


def machine(worker: workers.Identity = ANN, **fields: Any) -> Announcement:
    """A worker with more than enough of everything."""
    enough = {"cores": 8, "memory_bytes": 64 * 10**9, "version": release.code_version()}
    return workers.introduction(worker, "emulate", 1).model_copy(update=enough | fields)


def queue_a_run(alice: Browser, **need: Any) -> int:
    run_id: int = alice.post("/runs", request_body()).json()["id"]
    if need:
        Run.objects.filter(pk=run_id).update(need=need)
    return run_id


# Who can do a run ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("need", "worker", "reason"),
    [
        ({}, {}, ""),
        ({"memory_bytes": 2 * 10**9}, {"memory_bytes": 10**9}, "needs 2.0 GB of memory and it has 1.0 GB"),
        ({"memory_bytes": 10**9}, {"memory_bytes": 10**9}, ""),
        ({"model": "a" * 64, "model_name": "mine"}, {"models": ("b" * 64,)}, "cannot get the model mine"),
        ({"method": "two-thirds 0.3 abc"}, {}, "lacks the method of two-thirds 0.3 abc: install it there"),
        ({"method": "two-thirds 0.3 abc"}, {"methods": ("two-thirds 0.2 abc",)}, "lacks the method"),
        ({"method": "two-thirds 0.3 abc"}, {"methods": ("x 1 y", "two-thirds 0.3 abc")}, ""),
        ({"model": "a" * 64}, {"models": ("a" * 64,)}, ""),
        ({"cores": 6}, {"cores": 4}, "needs 6 cores and it has 4; another worker has 8"),
        ({"cores": 6}, {"cores": 8}, ""),
        ({"cores": 100}, {"cores": 8}, ""),
        ({}, {"refused": "it was drained by eve"}, "it was drained by eve"),
    ],
)
def test_a_worker_leaves_a_run_to_others_for_one_reason(
    need: dict[str, Any], worker: dict[str, Any], reason: str
) -> None:
    one = machine(**worker)
    found = reason_against(Need(**need), one, [one, machine(BOB)])
    assert reason in found and bool(reason) == bool(found)


def test_a_run_is_not_left_to_a_worker_with_more_cores_that_takes_none() -> None:
    one, drained = machine(cores=4), machine(BOB, cores=8, refused="it was drained by eve")
    assert reason_against(Need(cores=6), one, [one, drained]) == ""


def test_a_run_needs_the_weights_of_all_devices_and_those_of_the_reference() -> None:
    """tiny-gpt2 on voltage: every one of the three devices holds all weights."""
    spec = run_spec()
    plan = recorded()[1].plan
    assert plan is not None
    weights = 4 * model_numbers(spec.model)
    need = need_of(spec, plan)
    devices = len(spec.cluster.devices)
    assert need.memory_bytes >= (devices + 1) * weights * 0.99
    assert need.memory_bytes <= (devices + 1) * weights + 10**9


@pytest.mark.parametrize(("dilation", "cores"), [("auto", 1), ("native", 3), (1000.0, 1)])
def test_a_run_needs_cores_enough_for_the_dilation_that_it_asks_for(dilation: Any, cores: int) -> None:
    assert cores_for(prepare(run_spec(dilation=dilation))) == cores


def test_ten_times_the_dilation_needs_a_tenth_of_the_cores() -> None:
    """At dilation 1 the load is 65 % of so many cores as `demands` says for one core."""
    prepared = prepare(run_spec(dilation=0.01))
    load = demands(prepared.spec, CAUTIOUS, simulate(prepared)[0], cores=1)["cores"]
    assert cores_for(prepared) == math.ceil(load / 0.01) > 10
    less = prepared._replace(spec=run_spec(dilation=0.1))
    assert cores_for(less) == math.ceil(load / 0.1)


def model_numbers(model: Any) -> int:
    """Numbers of GPT-2, counted by hand: tables, and per layer two norms, attention, feed-forward."""
    hidden, inner = model.hidden_size, model.intermediate_size
    layer = 4 * hidden + 4 * hidden * hidden + 4 * hidden + 2 * hidden * inner + inner + hidden
    return (model.vocab_size + model.max_positions) * hidden + model.num_layers * layer + 2 * hidden


SLOW = CAUTIOUS.model_copy(update={"call_s": 1.0, "op_overhead_s": 1.0})


def test_a_machine_with_slower_cores_needs_more_of_them() -> None:
    prepared = prepare(run_spec(dilation=0.01))
    assert cores_for(prepared, SLOW) > cores_for(prepared)


def test_of_a_long_run_only_the_beginning_says_how_many_cores_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A person waits for the answer; whole predictions take minutes."""
    prepared = prepare(run_spec(dilation=0.01, workload={"prompt_tokens": 8, "new_tokens": 50}))
    whole, parts = len(simulate(prepared)[0]), []

    def watched(*given: Any) -> Any:
        trace, outcome = simulate(*given)
        parts.append(len(trace))
        return trace, outcome

    monkeypatch.setattr(kernel, "ACTIONS_BETWEEN_STOP_CHECKS", 60)
    monkeypatch.setattr(predictions, "SIMULATE_S", -1.0)
    monkeypatch.setattr(predictions, "simulate", watched)
    assert cores_for(prepared) > 10
    assert 0 < parts[0] < whole / 2


def test_a_run_that_is_started_keeps_the_cores_that_it_needs(alice: Browser, live_redis: redis.Redis) -> None:
    run_id = alice.post("/runs", request_body(dilation="native")).json()["id"]
    assert Run.objects.get(pk=run_id).need["cores"] == 3


def test_the_cores_of_a_run_follow_from_the_times_of_the_worker_that_plans_it(
    alice: Browser, live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = cores_for(prepare(run_spec(dilation=2.0)), SLOW)
    monkeypatch.setattr(tasks, "known_calibration", lambda: SimpleNamespace(profile=SLOW))
    run_id = alice.post("/runs", request_body(dilation=2.0)).json()["id"]
    assert Run.objects.get(pk=run_id).need["cores"] == cores > 1


def test_the_first_run_that_a_worker_can_do_is_taken_and_the_others_wait(
    alice: Browser, live_redis: redis.Redis
) -> None:
    large, small = queue_a_run(alice, memory_bytes=32 * 10**9), queue_a_run(alice)
    ann, bob = machine(memory_bytes=10**10), machine(BOB)
    taken = waiting.take(ANN, ann, [ann, bob])
    assert taken is not None and taken.pk == small and taken.worker == str(ANN)
    assert waiting.take(ANN, ann, [ann, bob]) is None
    taken = waiting.take(BOB, bob, [ann, bob])
    assert taken is not None and taken.pk == large


def test_a_run_waits_for_the_boards_of_another_and_the_next_is_taken(
    alice: Browser, live_redis: redis.Redis
) -> None:
    first, same, apart = (
        queue_a_run(alice, boards=boards) for boards in (["pi-1", "pi-2"], ["pi-2"], ["pi-3"])
    )
    ann = machine(slots=3)
    places = waiting.forecast(waiting.queued(), [ann], [], 60.0, NOW)
    assert [places[one].starts_in_s for one in (first, same, apart)] == [0.0, 60.0, 0.0]
    taken = [waiting.take(ANN, ann, [ann]) for _ in range(3)]
    assert [run.pk if run else None for run in taken] == [first, apart, None]
    Run.objects.filter(pk=first).update(status="finished")
    run = waiting.take(ANN, ann, [ann])
    assert run is not None and run.pk == same


# Who may work -------------------------------------------------------------------------------------
class Tap:
    """An intake that notes how it was set."""

    def __init__(self) -> None:
        self.is_open = True

    def open(self, is_open: bool) -> None:
        self.is_open = is_open


@pytest.fixture(autouse=True)
def nobody_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a busy host takes from one beat of a test to the next."""
    monkeypatch.setattr(fleet, "SILENT_AFTER_S", 3600)


@pytest.fixture
def ann(live_redis: redis.Redis) -> Any:
    """Ann's heartbeat, which beats when the test says so."""
    heart = workers.Heartbeat(machine(), Tap(), on_beat=lambda worker: None)
    heart.beat()
    yield heart
    fleet.withdraw(heart.announcement)


def page(browser: Browser) -> dict[str, Any]:
    """The page Machines, without workers that other tests may have left."""
    answer = browser.get("/fleet").json()
    return answer | {"workers": [one for one in answer["workers"] if one["node"].endswith(("ann", "bob"))]}


def test_a_drained_worker_takes_nothing_and_works_again_when_it_may(
    ann: workers.Heartbeat, alice: Browser
) -> None:
    assert ann.intake.is_open and workers.alive()["emulate"] == ["emulate@ann"]
    assert alice.post("/fleet/drain", {"worker": str(ANN)}).status_code == 204
    ann.beat()
    assert not ann.intake.is_open and "emulate@ann" not in workers.alive()["emulate"]
    (shown,) = page(alice)["workers"]
    assert (shown["refused"], shown["drained"]) == ("it was drained by alice", True)
    later = workers.Heartbeat(machine(ANN._replace(pid=8)), Tap())
    later.beat()
    assert not later.intake.is_open, "a restart of its process must change nothing"
    fleet.withdraw(later.announcement)
    assert alice.post("/fleet/undrain", {"worker": str(ANN)}).status_code == 204
    ann.beat()
    assert ann.intake.is_open and workers.alive()["emulate"] == ["emulate@ann"]


def test_a_viewer_may_look_at_machines_and_not_drain_them(ann: workers.Heartbeat, victor: Browser) -> None:
    assert victor.get("/fleet").status_code == 200
    assert victor.post("/fleet/drain", {"worker": str(ANN)}).status_code == 403
    assert not release.is_drained(ANN.place)


def test_draining_a_worker_that_is_not_there_says_so(alice: Browser, live_redis: redis.Redis) -> None:
    assert alice.post("/fleet/drain", {"worker": "emulate@nowhere/x/1/1"}).status_code == 404


def test_a_worker_with_other_code_is_refused_with_both_versions(
    ann: workers.Heartbeat, alice: Browser
) -> None:
    release.prepare_release()
    ann.announcement = ann.announcement.model_copy(update={"version": "older"})
    ann.beat()
    assert not ann.intake.is_open
    (shown,) = page(alice)["workers"]
    assert shown["refused"].startswith(
        f"its code has the version older and the server's has {release.code_version()}"
    )
    run_id = queue_a_run(alice)
    assert "version older" in alice.get(f"/runs/{run_id}").json()["detail"]


def test_only_who_has_the_methods_and_packs_of_the_server_plans(
    ann: workers.Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "installed_code", lambda: ("two-thirds 0.3 abc",))
    monkeypatch.setattr(release, "installed_packs", lambda: ("my-lab 0.1",))
    release.prepare_release()
    has = {"methods": ("other 1 x", "two-thirds 0.3 abc"), "packs": ("my-lab 0.1",)}
    for lacking, words in (
        ({}, ""),
        ({"packs": ()}, "it lacks my-lab 0.1, which the server uses: install the same there"),
        ({"methods": ("two-thirds 0.3 abd",)}, "it lacks two-thirds 0.3 abc, which the server uses"),
        ({"methods": (), "packs": ()}, "it lacks two-thirds 0.3 abc and my-lab 0.1, which"),
    ):
        plans = workers.Heartbeat(machine(ANN).model_copy(update={"queue": "plan", **has, **lacking}))
        plans._judge()
        assert plans.refused.startswith(words) and bool(plans.refused) == bool(words)
        fleet.withdraw(plans.announcement)
    ann.beat()
    assert not ann.refused, "runs say themselves what they need"


def test_a_worker_of_a_version_that_says_more_hides_no_other(ann: workers.Heartbeat, alice: Browser) -> None:
    """As one that announces a field of the next release, and one whose text is broken."""
    for worker, text in ((BOB, '{"accelerators": 2, "node": "emulate@bob"}'), (BOB._replace(pid=8), "{")):
        client().set(f"worker:emulate:{worker}", text, ex=60)
    try:
        shown = {one["worker"]: one for one in page(alice)["workers"]}
        assert shown[str(ANN)]["refused"] == ""
        assert [shown[str(one)]["node"] for one in (BOB, BOB._replace(pid=8))] == ["emulate@bob"] * 2
        assert "as another version does" in shown[str(BOB)]["refused"]
        assert workers.alive()["emulate"] == ["emulate@ann"]
        assert [one.place for one in fleet.announced("emulate")] == [ANN.place, BOB.place, BOB.place]
    finally:
        for worker in (BOB, BOB._replace(pid=8)):
            client().delete(f"worker:emulate:{worker}")


def test_what_the_server_has_and_no_worker_is_said_and_the_other_way_round() -> None:
    mine = ("two-thirds 0.3 abc",)
    older = machine(methods=("two-thirds 0.2 abb",))
    same, resting = (machine(BOB, methods=mine, refused=why) for why in ("", "it was drained by eve"))
    (lacks,) = machines.gaps(mine, [older, resting])
    assert lacks.startswith("No worker that emulates has two-thirds 0.3 abc: ")
    assert list(machines.gaps(mine, [older, same])) == []
    (beside,) = machines.elsewhere(mine, [older, same])
    assert beside.startswith("A worker on ann has two-thirds 0.2 abb, which the server lacks: ")
    assert list(machines.gaps(mine, [])) == [], "that no worker is there is said elsewhere"


def test_the_page_says_who_has_what(
    ann: workers.Heartbeat, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "installed_code", lambda: ("two-thirds 0.3 abc",))
    monkeypatch.setattr(machines, "installed_packs", lambda: ("my-lab 0.1",))
    has = {"methods": ("two-thirds 0.2 abb",), "packs": ("my-lab 0.2",)}
    ann.announcement = ann.announcement.model_copy(update=has)
    ann.beat()
    shown = page(alice)
    assert shown["uses"] == ["two-thirds 0.3 abc", "my-lab 0.1"]
    assert {name: shown["workers"][0][name] for name in has} == {
        name: list(value) for name, value in has.items()
    }
    assert ["on ann has two-thirds 0.2 abb" in sentence for sentence in shown["elsewhere"]] == [True]


def test_hosts_with_the_same_name_are_two_workers(ann: workers.Heartbeat, alice: Browser) -> None:
    twin = workers.Heartbeat(machine(ANN._replace(home="another-home")))
    twin.beat()
    assert [one["node"] for one in page(alice)["workers"]] == ["emulate@ann", "emulate@ann"]
    fleet.withdraw(twin.announcement)
    assert [one["worker"] for one in page(alice)["workers"]] == [str(ANN)]


def test_a_worker_whose_database_does_not_answer_is_still_announced(
    ann: workers.Heartbeat, live_redis: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    def fails(place: str, version: str) -> str:
        raise OperationalError("the database restarts")

    monkeypatch.setattr(release, "reason_to_rest", fails)
    fleet.withdraw(ann.announcement)
    ann.beat()
    assert workers.alive()["emulate"] == ["emulate@ann"]


# Whom a message has missed ------------------------------------------------------------------------
def test_an_idle_worker_wakes_itself_for_a_run_whose_message_is_gone(
    alice: Browser, live_redis: redis.Redis
) -> None:
    me = machine()
    own = f"emulate:{ANN}"
    queue_a_run(alice)
    assert not waiting.look_for_work(ANN, me), "its message is still in the queue"
    live_redis.delete("emulate")
    assert not waiting.look_for_work(ANN, machine(refused="it was drained by eve"))
    assert waiting.look_for_work(ANN, me) and live_redis.llen(own) == 1
    assert not waiting.look_for_work(ANN, me), "it has been woken already"
    live_redis.delete(own)
    assert waiting.take(ANN, me, [me]) is not None
    queue_a_run(alice)
    live_redis.delete("emulate")
    assert not waiting.look_for_work(ANN, me), "it is busy"


def test_a_worker_that_was_drained_since_its_last_beat_takes_no_run(
    alice: Browser, live_redis: redis.Redis
) -> None:
    me = machine()
    queue_a_run(alice)
    release.drain(ANN.place, "eve")
    assert waiting.take(ANN, me, [me]) is None
    release.undrain(ANN.place)
    release.prepare_release()
    older = machine(version="older")
    assert waiting.take(ANN, older, [older]) is None, "it has just started, and has not beaten yet"
    assert waiting.take(ANN, me, [me]) is not None


# When ---------------------------------------------------------------------------------------------
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def forecast(alice: Browser, fleet_now: list[Announcement], active: Any = ()) -> list[tuple[int, Any]]:
    found = waiting.forecast(waiting.queued(), fleet_now, active, 60.0, NOW)
    return [(place.position, place.starts_in_s) for place in found.values()]


def test_places_in_the_queue_have_a_start_by_the_slots_that_become_free(
    alice: Browser, live_redis: redis.Redis
) -> None:
    """Runs of 60 s. Ann is busy for 20 s more, Bob is idle; only Bob has memory for the third run."""
    for _ in range(3):
        queue_a_run(alice)
    queue_a_run(alice, memory_bytes=32 * 10**9)
    active = [Ongoing(str(ANN), NOW - timedelta(seconds=40), 900)]
    both = [machine(memory_bytes=10**10), machine(BOB)]
    assert forecast(alice, both, active) == [(1, 0.0), (2, 20.0), (3, 60.0), (4, 120.0)]
    assert forecast(alice, both[:1], active) == [(1, 20.0), (2, 80.0), (3, 140.0), (4, None)]


def test_a_waiting_run_says_whose_end_it_waits_for_and_names_no_time_that_has_passed(
    ann: workers.Heartbeat, alice: Browser
) -> None:
    """Runs of 60 s. The first run under way has 20 s left, the other should have ended 10 s ago."""
    first, second, third = (queue_a_run(alice) for _ in range(3))

    def waits(one: Announcement, *begun_s: float) -> list[tuple[str, float | None]]:
        active = [Ongoing(str(ANN), NOW - timedelta(seconds=ago_s), 900) for ago_s in begun_s]
        found = waiting.forecast(waiting.queued(), [one], active, 60.0, NOW).values()
        return [(place.waits_for, place.starts_in_s) for place in found]

    after = [f"It starts when run {run_id} ends." for run_id in (900, first, second)]
    assert waits(machine()) == [("A worker takes it now.", 0.0), (after[1], 60.0), (after[2], 120.0)]
    assert waits(machine(), 40) == [(after[0], 20.0), (after[1], 80.0), (after[2], 140.0)]
    assert waits(machine(), 70) == [(text, None) for text in after]
    assert waits(machine(slots=2), 70)[0] == ("A worker takes it now.", 0.0), "the slot that is free"
    calibrating = Calibrating(what="products", about_s=30.0)
    assert waits(machine(calibrating=calibrating))[0] == ("It starts when emulate@ann is calibrated.", 30.0)
    assert alice.get(f"/runs/{third}").json()["detail"] == after[2]


HOLDER = Holder(user="bob", pid=4711, purpose="run", since=1_700_000_000.0, counts=True)


def test_while_another_program_has_the_machine_pages_say_whose_and_name_no_time(
    ann: workers.Heartbeat, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for a stranger's."""
    run_id = queue_a_run(alice)
    stranger = HOLDER.model_copy(update={"user": "eve", "counts": False})
    monkeypatch.setattr(ann, "figures", lambda: {"beside": (stranger,)})
    ann.beat()
    assert alice.get("/health").json()["held_by"] is None
    assert alice.get(f"/runs/{run_id}").json()["detail"] == "A worker takes it now."
    monkeypatch.setattr(ann, "figures", lambda: {"beside": (stranger, HOLDER)})
    ann.beat()
    assert alice.get("/health").json()["held_by"] == HOLDER.model_dump()
    assert [one["user"] for one in page(alice)["workers"][0]["beside"]] == ["eve", "bob"]
    waits = "It starts when a run of bob (process 4711) ends."
    (place,) = waiting.forecast(waiting.queued(), waiting.fleet(), [], 60.0, NOW).values()
    assert (place.waits_for, place.starts_in_s) == (waits, None)
    assert alice.get(f"/runs/{run_id}").json()["detail"] == waits
    free = machine(BOB)
    assert fleet.holder_of([ann.announcement, free]) is None, "one machine is free"


def test_a_worker_announces_who_else_emulates_on_its_machine_but_not_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGELOOM_STATE_DIR", str(tmp_path))  # a queue of its own
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        with turn(queue_name(), lambda wait: None, purpose="calibration"):
            os.write(write, b"x")
            signal.pause()
    try:
        os.read(read, 1)
        (holder,) = tasks.beside()
        assert (holder.pid, holder.purpose, holder.counts) == (pid, "calibration", True)
        assert holder.user == pwd.getpwuid(os.getuid()).pw_name and holder.since > time.time() - 600
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with turn(queue_name(), lambda wait: None):
        assert tasks.beside() == ()


def test_a_run_that_no_worker_can_do_says_why_on_the_run_and_on_the_page(
    ann: workers.Heartbeat, alice: Browser
) -> None:
    ann.announcement = ann.announcement.model_copy(update={"memory_bytes": 1})
    run_id = queue_a_run(alice, memory_bytes=10**15)
    reason = "the run needs 1000000.0 GB of memory"
    run = alice.get(f"/runs/{run_id}").json()
    assert run["queue_position"] == 1 and run["starts_in_s"] is None
    assert run["detail"].startswith("No worker can run it: emulate@ann: " + reason)
    (waits,) = page(alice)["queue"]
    assert reason in waits["problem"] and reason in waits["refusals"]["emulate@ann"]


def test_without_a_worker_a_queued_run_says_how_to_start_one(alice: Browser, live_redis: redis.Redis) -> None:
    for key in live_redis.scan_iter(match="worker:emulate:*"):
        live_redis.delete(key)
    run_id = queue_a_run(alice)
    assert "./loom worker --queue emulate" in alice.get(f"/runs/{run_id}").json()["detail"]


def test_a_run_of_which_nothing_is_known_has_no_estimate(alice: Browser, live_redis: redis.Redis) -> None:
    queue_a_run(alice)
    assert waiting.typical_run_s() is None
    one = machine()
    (place,) = waiting.forecast(waiting.queued(), [one], [], None, NOW).values()
    assert place.starts_in_s is None and place.problem == ""
