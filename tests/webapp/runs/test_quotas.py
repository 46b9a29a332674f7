"""Shares: runs of one person do not delay another's, and nobody stores or sends without end."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from threading import Event, Lock, Thread
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from engine.domain.stored import to_document
from tests.support.web import PASSWORD, Browser, person, request_body
from webapp.accounts import rates
from webapp.accounts.rates import Rates
from webapp.base.errors import Conflict
from webapp.clusters import services as clusters
from webapp.events.models import EventSegment
from webapp.experiments.models import Experiment
from webapp.runs import predictions, quotas
from webapp.runs.models import Run
from webapp.runs.waiting import in_turn

shared_spend = rates.spend


@pytest.fixture(autouse=True)
def fresh_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process alone, and of one moment, however long a test takes; the tests of the shared ones take
    `live_redis`.
    """
    alone = Rates()
    monkeypatch.setattr(rates, "spend", lambda who, per_minute: alone.spend(who, per_minute, 0.0))


def stored(owner: User | None, status: str = "queued") -> Run:
    fields: dict[str, Any] = {"request": {}, "spec": {}, "cluster_name": "x", "model": "x", "strategy": "x"}
    return Run.objects.create(owner=owner, status=status, **fields)


def order() -> list[str]:
    runs = in_turn(Run.objects.filter(status="queued"))
    return [run.owner.username if run.owner else "nobody" for run in runs]


# Turns ----------------------------------------------------------------------------------------------
def test_a_burst_of_one_person_does_not_delay_the_first_run_of_another(db: None) -> None:
    ada, bob = person("ada", "operator"), person("bob", "operator")
    first, *_ = [stored(ada) for _ in range(100)]
    of_bob = stored(bob)
    runs = list(in_turn(Run.objects.filter(status="queued")))
    assert [run.pk for run in runs[:2]] == [first.pk, of_bob.pk]


def test_people_take_turns_and_each_ones_runs_keep_their_order(db: None) -> None:
    ada, bob = person("ada", "operator"), person("bob", "operator")
    of_ada = [stored(ada) for _ in range(3)]
    stored(bob)
    stored(bob)
    stored(None)
    assert order() == ["ada", "bob", "nobody", "ada", "bob", "ada"]
    assert [run.pk for run in in_turn(Run.objects.filter(owner=ada))] == [run.pk for run in of_ada]


def test_who_has_a_run_going_waits_for_those_who_have_none(db: None) -> None:
    ada, bob = person("ada", "operator"), person("bob", "operator")
    stored(ada, status="running")
    stored(bob, status="finished")
    stored(ada)
    stored(bob)
    assert order() == ["bob", "ada"]


def test_the_page_shows_the_place_in_that_order(alice: Browser) -> None:
    ada = person("ada", "operator")
    for _ in range(3):
        stored(ada)
    mine = stored(User.objects.get(username="alice"))
    rows = {row["id"]: row["queue_position"] for row in alice.get("/runs").json()}
    assert rows[mine.pk] == 2


# Quotas ---------------------------------------------------------------------------------------------
@pytest.mark.redis
def test_a_person_has_so_many_runs_waiting(alice: Browser, live_redis: Any, settings: Any) -> None:
    settings.MAX_RUNS_WAITING = 2
    for _ in range(2):
        assert alice.post("/runs", request_body()).status_code == 201
    refused = alice.post("/runs", request_body())
    assert refused.status_code == 409
    assert refused.json()["detail"] == (
        "alice has 2 runs waiting, and the limit is 2: wait until some have started, or cancel some."
    )
    User.objects.filter(username="alice").update(is_superuser=True)
    assert alice.post("/runs", request_body()).status_code == 201


@pytest.mark.redis
def test_a_run_that_was_planned_while_others_were_stored_counts_them(
    alice: Browser, live_redis: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_RUNS_WAITING = 1
    plan = predictions.plan

    def plan_while_another_is_stored(spec: Any, person: int) -> Any:
        stored(User.objects.get(username="alice"))
        return plan(spec, person)

    monkeypatch.setattr(predictions, "plan", plan_while_another_is_stored)
    assert alice.post("/runs", request_body()).status_code == 409
    assert Run.objects.count() == 1


@pytest.mark.redis
def test_a_person_keeps_so_many_bytes_of_events(alice: Browser, live_redis: Any, settings: Any) -> None:
    settings.MAX_STORED_BYTES = 3000
    for owner in ("alice", None):  # others' do not count
        run = stored(User.objects.filter(username=owner).first(), status="finished")
        for first in (1, 2):
            EventSegment.objects.create(run=run, first=first, last=first, batches=b"x" * 1499)
    assert alice.post("/runs", request_body()).status_code == 201
    EventSegment.objects.create(run=Run.objects.first(), first=1, last=1, batches=b"xx")
    refused = alice.post("/runs", request_body())
    assert refused.status_code == 409 and "delete some runs" in refused.json()["detail"]


@pytest.mark.redis
def test_emulations_of_one_person_take_so_many_hours_of_a_day(
    alice: Browser, live_redis: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MACHINE_HOURS = 2
    owner, other = User.objects.get(username="alice"), person("bob", "operator")
    noon_s = 500_000 * 3600.0
    for late_s, wall_s in ((0.0, 3600.0), (3599.0, 1800.0), (3600.0, 1799.0)):
        monkeypatch.setattr(quotas.time, "time", lambda at_s=noon_s + late_s: at_s)
        quotas.count_machine_time(owner.pk, wall_s)
        quotas.count_machine_time(other.pk, 1.0)
    quotas.check_machine_time(owner)  # a second is left
    quotas.count_machine_time(owner.pk, 1.0)
    refused = alice.post("/runs", request_body())
    assert refused.status_code == 409
    assert "alice took 2.0 h of the last 24, and the limit is 2 h" in refused.json()["detail"]
    with pytest.raises(Conflict, match="wait until"):
        quotas.check_machine_time(owner)
    quotas.check_machine_time(other)
    assert quotas.machine_s(other.pk) == 3.0
    monkeypatch.setattr(quotas.time, "time", lambda: noon_s + 24 * 3600.0)  # the first hour counts no more
    assert quotas.machine_s(owner.pk) == 1800.0
    quotas.check_machine_time(owner)
    quotas.count_machine_time(owner.pk, 1.0)  # and what does not count is forgotten
    assert set(live_redis.hkeys(f"machine:{owner.pk}")) == {"500001", "500024"}
    monkeypatch.setattr(quotas.time, "time", lambda: noon_s)
    settings.MACHINE_HOURS = 0
    quotas.check_machine_time(owner)
    assert 23 * 3600 < live_redis.ttl(f"machine:{owner.pk}") <= 24 * 3600
    live_redis.delete(*live_redis.keys("machine:*"))


@pytest.mark.redis
def test_an_experiment_is_emulated_within_the_hours_of_its_owner(
    alice: Browser, live_redis: Any, settings: Any
) -> None:
    settings.MACHINE_HOURS = 1
    owner = User.objects.get(username="alice")
    made = alice.post("/experiments", {"experiment": {"name": "hours", "base": request_body()}}).json()["id"]
    quotas.count_machine_time(owner.pk, 3600.0)
    refused = alice.post(f"/experiments/{made}/emulate", {"choose": "all"})
    live_redis.delete(*live_redis.keys("machine:*"))
    assert refused.status_code == 409 and "the limit is 1 h" in refused.json()["detail"]
    assert alice.post(f"/experiments/{made}/emulate", {"choose": "all"}).status_code == 202


@pytest.mark.parametrize(
    ("limit", "path", "body"),
    [
        ("MAX_CLUSTERS", "/clusters", {"spec": request_body()["cluster"] | {"name": "more"}}),
        ("MAX_EXPERIMENTS", "/experiments", {"experiment": {"name": "more", "base": request_body()}}),
    ],
)
def test_a_person_stores_so_many(
    alice: Browser, monkeypatch: pytest.MonkeyPatch, limit: str, path: str, body: dict[str, Any]
) -> None:
    monkeypatch.setattr(f"webapp.base.budgets.{limit}", 0)
    refused = alice.post(path, body)
    assert refused.status_code == 422, refused.content
    assert "and the limit is 0: delete some first" in refused.json()["detail"]


def test_a_person_stores_documents_of_so_many_characters(
    alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists read the documents of everybody."""
    spec = request_body()["cluster"] | {"name": "mine"}
    made = alice.post("/clusters", {"spec": spec}).json()
    chars = sum(len(json.dumps(to_document(value))) for value in stored_cluster(made["id"]))
    monkeypatch.setattr("webapp.base.budgets.MAX_CLUSTERS_CHARS", 2 * chars + 10)
    second = alice.post("/clusters", {"spec": spec | {"name": "more"}}).json()
    refused = alice.post("/clusters", {"spec": spec | {"name": "most"}})
    assert refused.status_code == 422 and "characters stored, and the limit is" in refused.json()["detail"]
    place, edit = f"/clusters/{second['id']}", {"version": second["version"]}
    assert alice.put(place, edit | {"spec": spec | {"name": "move"}}).status_code == 200
    longer = edit | {"version": 2, "spec": spec | {"name": "move", "title": "x" * 100}}
    assert alice.put(place, longer).status_code == 422
    alice.delete(f"/clusters/{made['id']}")
    assert alice.put(place, longer).status_code == 200


def stored_cluster(cluster_id: int) -> tuple[Any, Any]:
    cluster = clusters.find(cluster_id)
    return clusters.spec_of(cluster), clusters.layout_of(cluster)


def test_versions_of_an_experiment_that_were_started_count_as_stored(
    alice: Browser, monkeypatch: pytest.MonkeyPatch, nobody_hears: None
) -> None:
    fields = {"name": "long", "base": request_body(), "description": "x" * 5000}
    made = alice.post("/experiments", {"experiment": fields}).json()
    place = f"/experiments/{made['id']}"
    chars = len(json.dumps(Experiment.objects.get(pk=made["id"]).document))
    monkeypatch.setattr("webapp.base.budgets.MAX_EXPERIMENTS_CHARS", 2 * chars + 10)
    other = fields | {"description": "y" * 5000, "seeds": [1]}  # other points, so a version of its own
    assert alice.post(f"{place}/predict").status_code == 202
    assert alice.put(place, {"experiment": other, "version": 1}).status_code == 200
    assert alice.post(f"{place}/predict").status_code == 202
    refused = alice.put(place, {"experiment": fields, "version": 2})
    assert refused.status_code == 422 and "delete some first" in refused.json()["detail"]
    assert alice.post("/experiments", {"experiment": fields}).status_code == 422
    assert alice.put(place, {"name": "another name", "version": 2}).status_code == 200


def test_an_experiment_is_as_long_as_its_file_may_be(alice: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.base.budgets.MAX_EXPERIMENT_CHARS", 3000)
    fields = {"name": "long", "base": request_body(), "assumptions": ["x" * 3000]}
    refused = alice.post("/experiments", {"experiment": fields})
    assert refused.status_code == 422 and "the limit is 3,000" in refused.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/runs/export/csv?ids=1",
        "/compare?ids=1,2",
        "/compare/figure?ids=1,2",
        "/runs/1/critical-path",
        "/runs/1/trace.json",
        "/runs/1/report.csv",
        "/experiments/1/export/pdf",
        "/experiments/1/analysis",
    ],
)
def test_what_is_computed_when_asked_for_is_in_turns(
    victor: Browser, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    turns = turns_taken(monkeypatch)
    victor.get(path)
    assert turns == [User.objects.get(username="victor").pk]


def turns_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By whom, from now on."""
    turns: list[int] = []
    monkeypatch.setattr(rates, "turn", lambda person: turns.append(person) or nullcontext())
    return turns


@pytest.mark.parametrize("path", ["/scenarios", "/models", "/models/tiny-vit/picture", "/clusters/import"])
def test_files_of_one_person_are_read_in_turns(
    alice: Browser, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """One at a time is read for all: eight slow ones of one person kept the others' waiting."""
    turns, form = (
        turns_taken(monkeypatch),
        {"name": "mine", "file": io.BytesIO(b"x"), "files": io.BytesIO(b"x")},
    )
    headers = {"X-CSRFToken": alice.client.cookies["csrftoken"].value}
    if path == "/clusters/import":
        alice.post(path, {"text": "x"})
    else:
        alice.client.post(f"/api{path}", form, headers=headers)
    assert turns == [User.objects.get(username="alice").pk]


# Rates ----------------------------------------------------------------------------------------------
def test_a_bucket_lets_a_minutes_worth_through_and_fills_steadily() -> None:
    bucket = Rates()
    assert [bucket.spend("ada", 60, 100.0) for _ in range(60)] == [0.0] * 60
    assert bucket.spend("ada", 60, 100.0) == pytest.approx(1.0)
    assert bucket.spend("bob", 60, 100.0) == 0.0
    assert bucket.spend("ada", 60, 100.25) == pytest.approx(0.75)
    assert bucket.spend("ada", 60, 101.0) == 0.0
    assert bucket.spend("ada", 60, 101.0) == pytest.approx(1.0)
    assert [bucket.spend("ada", 60, 1e6) for _ in range(61)].count(0.0) == 60  # never more than it holds


@pytest.mark.redis
def test_all_web_processes_spend_from_one_bucket(live_redis: Any) -> None:
    """The function keeps nothing in its process: every call could be another one's."""
    live_redis.delete("rate:ada", "rate:bob")
    before, _ = live_redis.time()
    assert [shared_spend("ada", 3) for _ in range(3)] == [0.0] * 3
    wait_s = shared_spend("ada", 3)
    after, _ = live_redis.time()
    assert 19.0 - (after - before) < wait_s <= 20.0, "one in 20 s, of which some may be over"
    assert shared_spend("bob", 3) == 0.0
    assert 0 < live_redis.ttl("rate:ada") <= 60
    seconds, _ = live_redis.time()
    live_redis.hset("rate:ada", mapping={"left": 0, "at": seconds - 21})
    assert shared_spend("ada", 3) == 0.0, "a third of a minute later there is one again"
    assert shared_spend("ada", 3) > 0.0


@pytest.mark.redis
@pytest.mark.parametrize(
    ("left", "later_s", "pass_now"),
    [(3, 50, 3), (2, -30, 2)],
    ids=["never more than it holds", "a clock that went back takes nothing"],
)
def test_the_bucket_of_all_web_processes_holds(
    live_redis: Any, left: int, later_s: int, pass_now: int
) -> None:
    seconds, _ = live_redis.time()
    live_redis.hset("rate:ada", mapping={"left": left, "at": seconds - later_s})
    assert [shared_spend("ada", 3) for _ in range(4)].count(0.0) == pass_now


def test_without_redis_every_web_process_counts_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Any:
        raise redis.ConnectionError("Redis is gone")

    monkeypatch.setattr(rates, "client", gone)
    monkeypatch.setattr(rates, "rates", Rates())
    assert [shared_spend("ada", 2) > 0.0 for _ in range(3)] == [False, False, True]


def test_who_writes_too_fast_is_told_when_to_go_on_and_may_still_read(alice: Browser, settings: Any) -> None:
    settings.WRITES_PER_MINUTE = 3
    codes = [alice.post("/clusters/import", {"text": ""}).status_code for _ in range(4)]
    assert codes == [422, 422, 422, 429]
    refused = alice.post("/clusters/import", {"text": ""})
    assert 1 <= int(refused["Retry-After"]) <= 20
    assert f"try again in {refused['Retry-After']} s" in refused.json()["detail"]
    assert alice.get("/clusters").status_code == 200


def test_a_token_spends_from_the_same_share(alice: Browser, settings: Any) -> None:
    secret = alice.post("/account/tokens", {"name": "script", "role": "operator"}).json()["secret"]
    settings.WRITES_PER_MINUTE = 3
    headers = {"Authorization": f"Bearer {secret}"}
    codes = [
        Client().post("/api/clusters/import", "{}", content_type="application/json", headers=headers)
        for _ in range(4)
    ]
    assert [response.status_code for response in codes][-1] == 429
    assert alice.post("/clusters/import", {"text": ""}).status_code == 429


def test_one_address_tries_so_many_log_ins_whatever_the_names(db: None, settings: Any) -> None:
    settings.WRITES_PER_MINUTE = 3
    browser = Browser()
    codes = [browser.log_in(f"guess {number}", PASSWORD).status_code for number in range(4)]
    assert codes == [401, 401, 401, 429]


def test_by_default_a_person_who_changes_something_every_second_meets_no_limit(alice: Browser) -> None:
    assert {alice.post("/clusters/import", {"text": ""}).status_code for _ in range(60)} == {422}


def test_of_each_person_one_answer_is_computed_at_a_time() -> None:
    """Four exports at once of one viewer kept another's waiting for all four."""
    first, in_first, second = Lock(), Event(), Event()
    first.acquire()
    done: list[str] = []

    def computed(person: int, name: str, begun: Event, end: Lock) -> None:
        with rates.turn(person):
            begun.set()
            with end:
                done.append(name)

    never = Lock()
    threads = [Thread(target=computed, args=(1, "one's first", in_first, first))]
    threads[0].start()
    in_first.wait()
    threads.append(Thread(target=computed, args=(1, "one's second", second, never)))
    threads[1].start()
    computed(2, "the other's", Event(), never)
    assert done == ["the other's"] and not second.is_set()
    first.release()
    for thread in threads:
        thread.join()
    assert done == ["the other's", "one's first", "one's second"]


def test_who_has_many_files_made_waits_and_others_do_not(
    victor: Browser, alice: Browser, settings: Any, live_redis: redis.Redis
) -> None:
    settings.FILES_PER_MINUTE = 3
    codes = [victor.get("/runs/export/csv", ids="1").status_code for _ in range(5)]
    assert codes == [200] * 3 + [429] * 2
    assert victor.get("/runs").status_code == 200
    assert alice.get("/runs/export/csv", ids="1").status_code == 200
