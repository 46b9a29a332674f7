"""A database that the previous release made is brought to the present one with everything in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.support.web import request_body, run_spec
from webapp.events.models import EventSegment
from webapp.experiments.models import Computation
from webapp.jobs import suspicion
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
PREVIOUS = [
    ("clusters", "0001_initial"),
    ("runs", "0003_ownership"),
    ("experiments", "0001_initial"),
    ("fleet", None),
]
"""The migrations that the previous release had; it did not have the last app."""

OLD_REPORT = {
    "dilation": 4,
    "outcome": {"kind": "finished"},
    "links": [{"bytes": 10, "payload_bytes": 8}, {"bytes": 20, "payload_bytes": 17}],
    "devices": [{"peak_memory_bytes": 9}, {"peak_memory_bytes": 5}],
    "correctness": {"checked": True, "lossy": False},
}


@pytest.fixture
def previous() -> Iterator[MigrationExecutor]:
    executor = MigrationExecutor(connection)
    newest = executor.loader.graph.leaf_nodes()
    executor.migrate(PREVIOUS)
    yield MigrationExecutor(connection)
    MigrationExecutor(connection).migrate(newest)


def test_runs_clusters_and_people_of_the_previous_release_are_kept(previous: MigrationExecutor) -> None:
    old = previous.loader.project_state([node for node in PREVIOUS if node[1] is not None]).apps
    ann = old.get_model("auth", "User").objects.create(username="ann", password="secret")
    spec = run_spec().model_dump(mode="json")
    fields = {"request": request_body(), "spec": spec, "cluster_name": "lab-3", "strategy": "voltage"}
    runs = old.get_model("runs", "Run").objects
    done = runs.create(
        owner_id=ann.pk, status="finished", worker="emulate@a/h/1/2", fence=3, report=OLD_REPORT, **fields
    )
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    active = runs.create(status="running", started_at=begun, lease_until=begun, **fields)
    queued = runs.create(**fields)
    unsettled = runs.create(status="cancelled", **fields)
    old.get_model("runs", "EventSegment").objects.create(run_id=done.pk, first=1, last=1, batches=b"\x00\xff")

    figures = {"total_s": 2.0, "bytes": 5.0, "bytes[a--b]": 5.0}
    result = {"world": "simulated", "metrics": figures}
    computation = old.get_model("experiments", "Computation").objects.create(
        digest="d", spec=b"", world="simulated", result=result
    )
    execution = old.get_model("experiments", "Execution").objects.create(document={})
    for index, world in enumerate(("simulated", "emulated")):
        execution.cells.create(index=index, world=world, coordinates={}, computation=computation)

    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())

    (computed,) = Computation.objects.all()
    figures = {"latency_s": 2.0, "link_bytes": 5.0, "bytes[a--b]": 5.0}
    assert computed.result == {"world": "predicted", "metrics": figures}
    assert computed.world == "predicted"
    assert [cell.world for cell in computed.cells.all()] == ["predicted", "emulated"]
    assert [run.status for run in Run.objects.order_by("pk")] == [
        "finished",
        "running",
        "queued",
        "cancelled",
    ]
    kept = Run.objects.get(pk=done.pk)
    assert (kept.owner.username, kept.worker, kept.fence) == ("ann", "emulate@a/h/1/2", 3)
    assert kept.spec == spec and kept.need == {}
    assert kept.figures == {"dilation": 4, "link_bytes": 30, "payload_bytes": 25, "peak_memory_bytes": 9}
    assert (kept.lossy, kept.params["new_tokens"]) == (False, fields["request"]["workload"]["new_tokens"])
    assert Run.objects.get(pk=active.pk).figures == {}
    assert Run.objects.get(pk=active.pk).lease_until == begun
    assert (Run.objects.get(pk=queued.pk).need, Run.objects.get(pk=queued.pk).lease_until) == ({}, None)
    assert unsettled.pk in {run.pk for run in suspicion.late(Run)}, "nobody would ever complete its events"
    assert bytes(EventSegment.objects.get(run_id=done.pk).batches) == b"\x00\xff"
