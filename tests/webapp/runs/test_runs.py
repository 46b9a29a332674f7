"""Runs over HTTP: requested, queued, edited, cancelled, replayed, compared, exported."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from queue import Queue
from typing import Any

import pytest
import redis

import topologies
from engine.domain.events import Logged, ReportMade
from tests.support.web import Browser, RedisServer, recorded, request_body
from topologies import DiskPreset, LinkPreset, disk_presets, link_presets
from webapp.events import stream
from webapp.events.event_log import EventLog
from webapp.events.publisher import Publisher
from webapp.jobs import lease, workers
from webapp.runs import closing, control, services, tasks, waiting
from webapp.runs.models import Run

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
ME = workers.this_worker("emulate@here")


def started(browser: Browser, **overrides: Any) -> int:
    response = browser.post("/runs", request_body(**overrides))
    assert response.status_code == 201, response.content
    return response.json()["id"]


def claimed(run_id: int, worker: workers.Identity = ME) -> lease.Ownership:
    run = waiting.claim(run_id, worker)
    assert run is not None
    return lease.owner_of(run)


def publisher_of(run_id: int) -> Publisher:
    return Publisher(lease.owner_of(Run.objects.get(pk=run_id)))


def finished(browser: Browser, **overrides: Any) -> int:
    """A run with a report: the simulated world's, stored as a worker stores one."""
    run_id = started(browser, **overrides)
    events, report = recorded(**overrides)
    owner = claimed(run_id)
    with Publisher(owner) as publisher:
        publisher.publish([event for event in events if not isinstance(event, ReportMade)])
        closing.finish(owner, report)
    return run_id


# Asking -------------------------------------------------------------------------------------------
def test_a_run_is_stored_planned_and_queued(alice: Browser, live_redis: redis.Redis) -> None:
    run_id = started(alice, name="first", tags=["a"], notes="why")
    run = alice.get(f"/runs/{run_id}").json()
    assert (run["status"], run["queue_position"], run["owner"]) == ("queued", 1, "alice")
    assert (run["name"], run["tags"], run["notes"]) == ("first", ["a"], "why")
    assert run["plan"]["strategy"] == "voltage" and run["plan"]["work"]
    assert run["spec"]["model"]["num_layers"] == 2
    assert live_redis.llen("emulate") == 1
    events = alice.get(f"/runs/{run_id}/events").json()
    assert [event["state"] for event in events["events"]] == ["queued"]


def test_waiting_runs_know_their_place(alice: Browser, live_redis) -> None:
    first, second, third = started(alice), started(alice), started(alice)
    claimed(first)
    rows = {row["id"]: row["queue_position"] for row in alice.get("/runs").json()}
    assert rows == {first: None, second: 1, third: 2}
    assert alice.get("/health").json()["queue_length"] == 2
    assert alice.get("/health").json()["busy_run"] == first


def test_a_stored_cluster_is_run_without_what_is_switched_off_and_frozen(alice: Browser, live_redis) -> None:
    spec = topologies.load("voltage-6").model_dump(mode="json")
    drawing = {"spec": spec, "layout": {"positions": {}, "disabled": ["vm-6"]}}
    cluster_id = alice.post("/clusters", drawing).json()["id"]
    run_id = started(alice, cluster=None, cluster_id=cluster_id)
    alice.delete(f"/clusters/{cluster_id}")
    run = alice.get(f"/runs/{run_id}").json()
    names = [device["name"] for device in run["spec"]["cluster"]["devices"]]
    assert "vm-6" not in names and "vm-5" in names
    assert run["request"]["cluster"] == run["spec"]["cluster"]


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"model": "gpt-9"}, "model"),
        ({"strategy": "magic"}, "strategy"),
        ({"params": {"colour": "red"}}, "params.colour"),
        ({"workload": {"prompt_tokens": 0}}, "workload.prompt_tokens"),
        ({"workload": {}}, "workload"),
        ({"scenario": {"changes": [{"kind": "link_down", "at_s": 1, "link": "moon--mars"}]}}, "scenario"),
        ({"cluster": None}, "cluster_id"),
        ({"cluster": None, "cluster_id": True}, "cluster_id"),
        ({"seed": True}, "seed"),
        ({"dilation": -1}, "dilation.function-after[positive]"),
        ({"colour": "red"}, "colour"),
        ({"model": "../../../etc"}, "model"),
        ({"activation_bits": 8}, "activation_bits"),
    ],
)
def test_a_bad_request_is_refused_with_the_field(
    alice: Browser, live_redis, overrides: dict[str, Any], path: str
) -> None:
    response = alice.post("/runs", request_body(**overrides))
    assert response.status_code == 422
    paths = [field["path"] for field in response.json()["fields"]]
    assert any(found.startswith(path.partition(".function")[0]) for found in paths), paths
    assert not Run.objects.exists()


def test_an_impossible_plan_is_refused_with_its_reason(alice: Browser, live_redis) -> None:
    shares = {"params": {"shares": [1.0] * 9}}
    response = alice.post("/runs", request_body(strategy="gpipe", **shares))
    assert response.status_code in (409, 422)
    assert response.json()["detail"]
    assert not Run.objects.exists()


def test_a_model_directory_of_this_machine_is_offered_by_name(alice: Browser, live_redis, models_dir) -> None:
    (models_dir / "mine").mkdir()
    config = {
        "model_type": "gpt2",
        "n_layer": 2,
        "n_embd": 32,
        "n_head": 4,
        "vocab_size": 64,
        "n_positions": 64,
    }
    (models_dir / "mine" / "config.json").write_text(json.dumps(config))
    rows = {row["name"]: row for row in alice.get("/catalogue").json()["models"]}
    assert rows["mine"]["num_layers"] == 2
    run_id = started(alice, model="mine", weights="random")
    assert alice.get(f"/runs/{run_id}").json()["spec"]["model"]["hidden_size"] == 32


@pytest.mark.parametrize("written", ['{"model_type": "gpt2", "n_layer": null}', '{"model_type": []}', "["])
def test_a_broken_model_directory_is_not_offered_and_refused_by_name(
    alice: Browser, live_redis, models_dir, written: str
) -> None:
    (models_dir / "mine").mkdir()
    (models_dir / "mine" / "config.json").write_text(written)
    assert "mine" not in {row["name"] for row in alice.get("/catalogue").json()["models"]}
    response = alice.post("/runs", request_body(model="mine", weights="random"))
    assert response.status_code == 422
    assert "config.json" in response.json()["detail"] and not Run.objects.exists()


def test_the_catalogue_has_everything_that_forms_need(victor: Browser) -> None:
    catalogue = victor.get("/catalogue").json()
    assert {"single", "gpipe", "megatron", "voltage"} <= {row["name"] for row in catalogue["strategies"]}
    assert all(row["params_schema"]["type"] == "object" for row in catalogue["strategies"])
    assert {"demo-lm", "minilm", "gpt2"} <= {row["name"] for row in catalogue["models"]}
    assert catalogue["presets"] and catalogue["shapes"] == ["star", "ring", "mesh", "tree"]
    assert [LinkPreset.parse(row, "link") for row in catalogue["link_presets"]] == list(link_presets())
    assert [DiskPreset.parse(row, "disk") for row in catalogue["disk_presets"]] == list(disk_presets())


# Starting once, ending ----------------------------------------------------------------------------
def test_a_run_starts_once(alice: Browser, live_redis) -> None:
    run_id = started(alice)
    assert waiting.claim(run_id, ME) is not None
    assert waiting.claim(run_id, ME) is None


def test_a_cancelled_run_that_was_queued_never_starts(alice: Browser, live_redis) -> None:
    run_id = started(alice)
    assert alice.post(f"/runs/{run_id}/cancel").status_code == 202
    assert waiting.claim(run_id, ME) is None
    run = alice.get(f"/runs/{run_id}").json()
    assert (run["status"], run["error"]) == ("cancelled", "Cancelled by alice before it started.")
    states = [event["state"] for event in alice.get(f"/runs/{run_id}/events").json()["events"]]
    assert states == ["queued", "cancelled"]
    assert alice.post(f"/runs/{run_id}/cancel").status_code == 409


def test_cancelling_an_active_run_asks_its_worker_to_stop(alice: Browser, live_redis) -> None:
    owner = claimed(started(alice))
    assert alice.post(f"/runs/{owner.id}/cancel").status_code == 202
    sent = json.loads(live_redis.lpop(control.list_of(owner.id)))
    assert sent["command"] == {"kind": "stop"} and sent["by"] == "alice"
    run = alice.get(f"/runs/{owner.id}").json()
    assert run["status"] == "planning"
    assert run["detail"] == "alice asked to stop this run; its worker has not ended it yet."
    services.progress(owner, "running", "all is well")
    run = alice.get(f"/runs/{owner.id}").json()
    assert (run["status"], run["detail"][:5]) == ("running", "alice")


def test_without_redis_the_wish_to_cancel_reaches_the_worker_by_its_lease(
    alice: Browser, own_redis: RedisServer
) -> None:
    owner = claimed(started(alice))
    own_redis.stop()
    assert not tasks.is_to_stop(owner.id)
    assert alice.post(f"/runs/{owner.id}/cancel").status_code == 202
    assert tasks.is_to_stop(owner.id)


def dead_process() -> workers.Identity:
    """A process that was there and is not any more."""
    with subprocess.Popen(["sleep", "60"]) as process:
        identity = workers.Identity(ME.node, ME.home, process.pid, workers.started_at(process.pid))
        assert not workers.has_died(str(identity), ME.home)
        process.kill()
    assert workers.has_died(str(identity), ME.home)
    return identity


def test_a_dead_workers_run_is_marked_failed_and_keeps_its_events(alice: Browser, live_redis) -> None:
    owner = claimed(started(alice), dead_process())
    run_id = owner.id
    services.progress(owner, "running", "")
    log = EventLog(owner)
    log.add([Logged(level="info", text="last words")])
    log.send()
    assert closing.settle_abandoned() == [f"run {run_id}"]
    run = alice.get(f"/runs/{run_id}").json()
    assert run["status"] == "failed"
    assert "emulate@here ended or was silent" in run["error"] and "which was running" in run["error"]
    live_redis.delete(stream.stream_of(run_id))
    events = alice.get(f"/runs/{run_id}/events").json()["events"]
    assert [event.get("text") for event in events][1:] == ["last words", run["error"], None]
    assert events[-1] == {"type": "state", "state": "failed", "detail": run["error"]}
    assert closing.settle_abandoned() == []


def test_a_process_of_another_home_with_the_same_name_and_id_is_not_taken_for_this_one() -> None:
    """Hosts of a fleet may share a name, and containers the ids of processes."""
    dead = dead_process()
    elsewhere = dead._replace(home="another-home")
    assert workers.has_died(str(dead), ME.home)
    assert not workers.has_died(str(elsewhere), ME.home)
    assert workers.parse_identity("emulate@here/17/4") == workers.Identity("emulate@here", "", 17, 4)


def test_a_living_workers_run_is_left_alone(alice: Browser, live_redis) -> None:
    owner = claimed(started(alice))
    assert closing.settle_abandoned() == []
    assert alice.get("/health").status_code == 200
    assert Run.objects.get(pk=owner.id).status == "planning"
    assert workers.parse_identity(str(ME)) == ME and os.getpid() == ME.pid


def test_cancelling_a_run_whose_worker_died_closes_it(alice: Browser, live_redis) -> None:
    owner = claimed(started(alice), dead_process())
    assert alice.post(f"/runs/{owner.id}/cancel").status_code == 202
    run = alice.get(f"/runs/{owner.id}").json()
    assert run["status"] == "cancelled"
    assert run["error"] == "Cancelled by alice; the worker emulate@here had ended."


# Without Redis ------------------------------------------------------------------------------------
def test_without_redis_starting_says_so_and_leaves_no_run(alice: Browser, own_redis: RedisServer) -> None:
    own_redis.stop()
    response = alice.post("/runs", request_body(name="lost?"))
    assert response.status_code == 503
    assert "does not answer" in response.json()["detail"]
    assert alice.get("/runs").json() == []
    assert alice.get("/health").json()["redis"] == "does not answer"
    assert alice.post("/predict", request_body()).status_code == 503


def test_without_redis_finished_runs_stay_readable(alice: Browser, own_redis: RedisServer) -> None:
    run_id = finished(alice)
    own_redis.stop()
    assert alice.get(f"/runs/{run_id}").json()["report"]["outcome"]["kind"] == "finished"
    assert len(alice.get(f"/runs/{run_id}/events").json()["events"]) > 10


def test_without_redis_the_events_of_a_live_run_are_a_503(alice: Browser, own_redis: RedisServer) -> None:
    run_id = started(alice)
    own_redis.stop()
    assert alice.get(f"/runs/{run_id}/events").status_code == 503


# Live changes -------------------------------------------------------------------------------------
def running(browser: Browser) -> int:
    owner = claimed(started(browser))
    services.progress(owner, "running", "")
    return owner.id


def test_a_change_goes_to_the_run_and_gets_a_number(alice: Browser, live_redis) -> None:
    run_id = running(alice)
    link = topologies.load("lab-3").links[0].name
    command = {"kind": "set_rate", "link": link, "bit_per_s": 1e6, "direction": "both"}
    responses = [alice.post(f"/runs/{run_id}/changes", {"command": command}) for _ in range(2)]
    assert [response.status_code for response in responses] == [202, 202]
    assert [response.json()["id"] for response in responses] == [1, 2]
    sent = json.loads(live_redis.lpop(control.list_of(run_id)))
    assert sent == {"id": 1, "by": "alice", "command": command}


@pytest.mark.parametrize(
    "command",
    [
        {"kind": "link_down", "link": "moon--mars"},
        {"kind": "drop_device", "device": "hal-9000"},
        {"kind": "drop_device"},
        {"kind": "set_rate", "link": "desk--hub", "bit_per_s": -5},
        {"kind": "explode"},
        {
            "kind": "set_loss",
            "link": "desk--hub",
            "loss_frac": 0.95,
        },  # as in a scenario: TCP repeats for hours
    ],
)
def test_a_change_that_is_not_possible_is_refused(
    alice: Browser, live_redis, command: dict[str, Any]
) -> None:
    response = alice.post(f"/runs/{running(alice)}/changes", {"command": command})
    assert response.status_code == 422
    assert response.json()["detail"]


def test_only_a_running_run_can_be_changed(alice: Browser, live_redis) -> None:
    link = topologies.load("lab-3").links[0].name
    response = alice.post(f"/runs/{started(alice)}/changes", {"command": {"kind": "link_down", "link": link}})
    assert response.status_code == 409
    assert "queued" in response.json()["detail"]


def test_a_feed_that_ends_waits_for_no_further_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's report comes when its feed has ended."""
    commands: Queue[str] = Queue()
    waits = threading.Event()

    def pop(key: str, wait_s: int) -> str:
        waits.set()
        return commands.get(timeout=600)

    monkeypatch.setattr(control, "pop", pop)
    monkeypatch.setattr(control, "push", lambda key, text, keep_s: commands.put(text))
    with control.CommandFeed(1, None) as feed:
        assert waits.wait(120)
    assert commands.empty() and feed.queue.empty()


def test_commands_reach_the_runs_queue_and_its_events(alice: Browser, live_redis) -> None:
    run_id = running(alice)
    link = topologies.load("lab-3").links[0].name
    alice.post(f"/runs/{run_id}/changes", {"command": {"kind": "link_down", "link": link}})
    with (
        Publisher(lease.owner_of(Run.objects.get(pk=run_id))) as publisher,
        control.CommandFeed(run_id, publisher) as feed,
    ):
        assert feed.queue.get(timeout=600) == {"kind": "link_down", "link": link, "by": "alice"}
    events = alice.get(f"/runs/{run_id}/events").json()["events"]
    assert [e["text"] for e in events if e["type"] == "log"] == [f"alice asks: {link} down"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ({"kind": "set_rate", "bit_per_s": 3.3e7}, "set desk--hub to 33 Mbit/s (both ways)"),
        (
            {"kind": "set_delay", "delay_s": 0.002, "direction": "forward"},
            "delay desk--hub by 2 ms (only forward)",
        ),
        ({"kind": "set_loss", "loss_frac": 0.5}, "lose 50.00% of the packets on desk--hub (both ways)"),
    ],
)
def test_a_change_without_a_direction_is_in_force_both_ways_and_does_not_end_the_feed(
    alice: Browser, live_redis, command: dict[str, Any], sentence: str
) -> None:
    run_id = running(alice)
    for sent in (command | {"link": "desk--hub"}, {"kind": "drop_device", "device": "shelf"}):
        assert alice.post(f"/runs/{run_id}/changes", {"command": sent}).status_code == 202
    with (
        Publisher(lease.owner_of(Run.objects.get(pk=run_id))) as publisher,
        control.CommandFeed(run_id, publisher) as feed,
    ):
        first = feed.queue.get(timeout=600)
        assert first == {"link": "desk--hub", "direction": "both", "by": "alice"} | command
        assert feed.queue.get(timeout=600) == {"kind": "drop_device", "device": "shelf", "by": "alice"}
    texts = [e["text"] for e in alice.get(f"/runs/{run_id}/events").json()["events"] if e["type"] == "log"]
    assert texts == [f"alice asks: {sentence}", "alice asks: drop shelf"]


# Lists, edits -------------------------------------------------------------------------------------
def test_runs_are_listed_newest_first_and_filtered(alice: Browser, live_redis) -> None:
    one = started(alice, name="one", tags=["blue", 'a"b', "größer"])
    two = started(alice, name="two", strategy="single", tags=["blueish"])
    ids = lambda **query: [row["id"] for row in alice.get("/runs", **query).json()]  # noqa: E731
    assert ids() == [two, one]
    assert ids(strategy="single") == [two]
    assert ids(tag="blue") == [one] and ids(tag='a"b') == [one] and ids(tag="größer") == [one]
    assert ids(search="ON") == [one]
    assert ids(status="finished") == []
    assert ids(limit=1) == [two] and ids(limit=1, offset=1) == [one]
    assert alice.get("/runs", limit=0).json()["fields"][0]["path"] == "limit"


def test_name_notes_and_tags_are_edited_and_nothing_else(alice: Browser, live_redis) -> None:
    run_id = started(alice, notes="old")
    edited = alice.patch(f"/runs/{run_id}", {"name": "new", "tags": ["x"], "status": "finished"}).json()
    assert (edited["name"], edited["tags"], edited["notes"]) == ("new", ["x"], "old")
    assert edited["status"] == "queued"


def test_an_active_run_is_not_deleted_a_finished_one_is(alice: Browser, live_redis) -> None:
    active, over = running(alice), finished(alice)
    assert alice.delete(f"/runs/{active}").status_code == 409
    assert alice.delete(f"/runs/{over}").status_code == 204
    assert alice.get(f"/runs/{over}").status_code == 404
    assert not live_redis.exists(stream.stream_of(over))
