"""Runs of the version before, kept as they were stored, read through the present API.

`stored/vN` has runs as version N stored them: request, spec, plan, prediction, report and events of each.
`gpipe` is a real run, `voltage` lost a device and was planned again; `plans.json` has one plan per strategy.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from engine.domain.events import EVENTS
from engine.domain.plan import Plan
from engine.domain.stored import OLDEST, SCHEMA, read_plan, to_document
from engine.strategies.registry import STRATEGIES
from tests.support.web import Browser, run_spec
from webapp.clusters.models import Cluster
from webapp.events.models import EventSegment
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

STORED = Path(__file__).parent / "stored"
every_stored_run = pytest.mark.parametrize("name", ["gpipe", "voltage", "edgeformer", "lime"])


def stored(name: str) -> dict[str, Any]:
    documents: dict[str, Any] = json.loads((STORED / f"v{OLDEST}" / f"{name}.json").read_text())
    return documents


def put(documents: dict[str, Any]) -> Run:
    """A finished run in the database, as a worker of that version left it."""
    run = Run.objects.create(
        status="finished",
        archived=True,
        cluster_name="lab-3",
        model="tiny-gpt2",
        strategy=documents["spec"]["strategy"],
        outcome="finished",
        **{key: documents[key] for key in ("request", "spec", "plan", "prediction", "report")},
    )
    lines = [json.dumps(documents["events"][at : at + 50]) for at in range(0, len(documents["events"]), 50)]
    text = gzip.compress("\n".join(lines).encode())
    EventSegment.objects.create(run=run, first=1, last=len(lines), batches=text, schema=OLDEST)
    return run


@every_stored_run
def test_the_page_of_an_old_run_has_everything(name: str, alice: Browser) -> None:
    documents = stored(name)
    run = put(documents)
    answer = alice.get(f"/runs/{run.pk}")
    assert answer.status_code == 200, answer.content
    page = answer.json()
    assert page["problems"] == []
    then = documents["spec"]["cluster"]
    for device, before in zip(page["spec"]["cluster"]["devices"], then["devices"], strict=True):
        added = {key: device.pop(key) for key in set(device) - set(before)}  # fields since that version
        assert not any(added.values()), "a device of then has nothing of what came later"
    then["links"] = [{"parallel": 1} | link for link in then["links"]]
    assert page["spec"]["cluster"] == then
    for request, before in zip(page["report"]["requests"], documents["report"]["requests"], strict=True):
        assert request == {"queue_s": None, "answered_s": None} | before, "what came later is not known"
    assert page["report"]["world"] == documents["report"]["world"]
    assert page["prediction"]["world"] == "predicted"
    assert page["report"]["plan"] == page["plan"]
    known = page["report"]["predictions"]["with_all_changes_known"]
    report = documents["report"]
    kept = report["predictions"]["with_all_changes_known"]
    assert (known is None) == (kept is None)
    assert not kept or all(known[key] == kept[key] for key in kept if key != "attribution")
    before = report["predictions"]["before_the_start"]
    now = page["report"]["predictions"]["before_the_start"]
    assert now == before if before is None else now["latency_s"] == before["latency_s"]
    assert page["prediction"]["latency_s"] == documents["prediction"]["latency_s"]
    assert page["plan"]["work"] == documents["plan"]["work"]
    assert page["plan"]["holdings"] == documents["plan"]["holdings"]


def test_a_run_shows_the_plan_of_its_report_and_not_that_of_before_its_start(alice: Browser) -> None:
    """They differ where other code ran it, which made its plan anew."""
    documents = stored("gpipe")
    before = documents["plan"]["work"]
    documents["plan"]["work"] = before[::-1]
    page = alice.get(f"/runs/{put(documents).pk}").json()
    assert page["plan"]["work"] == documents["report"]["plan"]["work"] == before != before[::-1]
    waiting = put(documents | {"report": None})
    assert alice.get(f"/runs/{waiting.pk}").json()["plan"]["work"] == before[::-1]


def test_a_run_of_lime_says_by_its_workload_for_which_length_it_was_planned(alice: Browser) -> None:
    documents = stored("lime")
    assert documents["spec"]["params"] == {"assumed_tokens": 9, "mode": "dp"}
    page = alice.get(f"/runs/{put(documents).pk}").json()
    assert page["spec"]["workload"]["assumed_tokens"] == page["request"]["workload"]["assumed_tokens"] == 9
    assert page["spec"]["params"] == page["request"]["params"] == {"mode": "dp"}


@every_stored_run
def test_the_events_of_an_old_run_are_read_as_present_ones(name: str, alice: Browser) -> None:
    documents = stored(name)
    run = put(documents)
    events = alice.get(f"/runs/{run.pk}/events").json()["events"]
    parsed = EVENTS.validate_python(events)
    assert [event.type for event in parsed] == [event["type"] for event in documents["events"]]
    plans = [event["facts"]["plan"] for event in events if event.get("name") == "replanned"]
    assert len(plans) == (1 if name == "voltage" else 0)
    for plan in plans:
        Plan.model_validate(plan)


@every_stored_run
def test_an_old_run_is_exported_compared_and_asked_for_again(name: str, alice: Browser, live_redis) -> None:
    documents = stored(name)
    run = put(documents)
    report = alice.get(f"/runs/{run.pk}/report.json").json()
    assert report["schema"] == SCHEMA
    assert report["latency_s"] == documents["report"]["latency_s"]
    table = alice.get(f"/runs/{run.pk}/report.csv").content.decode()
    assert f"run,,latency_s,{documents['report']['latency_s']}" in table
    spans = [event for event in documents["events"] if event["type"] == "span"]
    trace = alice.get(f"/runs/{run.pk}/trace.json").json()["traceEvents"]
    assert sum(event["ph"] == "X" for event in trace) == len(spans)
    other = put(documents)
    assert alice.get("/compare", ids=f"{run.pk},{other.pk}").status_code == 200
    again = alice.post(f"/runs/{run.pk}/replay", {})
    assert again.status_code == 201, again.content
    assert alice.get(f"/runs/{again.json()['id']}").json()["spec"]["scenario"] == report["scenario"]


def test_a_stored_plan_of_every_strategy_is_read() -> None:
    plans = stored("plans")
    assert len(plans) >= 17
    assert set(plans) <= {strategy.name for strategy in STRATEGIES}
    for name, plan in plans.items():
        answer = read_plan(plan, name)
        assert answer.problem == ""
        assert answer.needed().work == Plan.model_validate(answer.needed().model_dump()).work


def newer_run(**changed: Any) -> Run:
    """A run of a version to come: every document has a key that is unknown here."""
    spec = run_spec()
    document = to_document(spec) | {"schema": SCHEMA + 1, "added": {"a": 1}}
    return Run.objects.create(
        status="queued", request={}, cluster_name="lab-3", strategy="voltage", spec=document | changed
    )


def test_a_key_more_in_a_stored_spec_is_no_error(alice: Browser) -> None:
    spec = to_document(run_spec()) | {"added": 1}
    run = Run.objects.create(status="queued", request={}, spec=spec, cluster_name="lab-3", strategy="voltage")
    page = alice.get(f"/runs/{run.pk}")
    assert page.status_code == 200
    assert (page.json()["spec"]["seed"], page.json()["problems"]) == (0, [])


def test_a_run_of_a_newer_version_says_so(alice: Browser) -> None:
    run = newer_run()
    page = alice.get(f"/runs/{run.pk}").json()
    assert page["spec"]["strategy"] == "voltage"
    (problem,) = page["problems"]
    assert "was stored by a newer version of EdgeLoom" in problem


def test_a_run_of_a_newer_version_that_cannot_be_read_says_so(alice: Browser) -> None:
    run = newer_run(cluster="elsewhere")
    page = alice.get(f"/runs/{run.pk}")
    assert page.status_code == 200
    assert page.json()["spec"] is None
    assert page.json()["problems"][0].endswith("and cannot be read here.")
    assert alice.get(f"/runs/{run.pk}/trace.json").status_code == 422
    assert [row["id"] for row in alice.get("/runs").json()] == [run.pk]


def test_a_cluster_that_cannot_be_read_does_not_hide_the_others(alice: Browser) -> None:
    good = Cluster.objects.create(name="lab-3", spec=to_document(run_spec().cluster) | {"added": 1})
    bad = Cluster.objects.create(name="later", spec={"schema": SCHEMA + 1, "nodes": []})
    assert [row["id"] for row in alice.get("/clusters").json()] == [good.pk]
    refused = alice.get(f"/clusters/{bad.pk}")
    assert refused.status_code == 422
    assert "newer version" in refused.json()["detail"]
