"""Points in the world nodes: on which boards, when, and beside what was predicted."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

import topologies
from engine.domain.errors import SpecError
from engine.runs.on_nodes import on_nodes
from engine.runs.predict import predict
from tests.support.experiments import BASE, RATES, fields
from tests.support.waiting_points import ME, state, stored
from tests.support.web import Browser, request_body, run_spec
from webapp.clusters import nodes
from webapp.clusters.models import Node
from webapp.experiments import emulations, executions, points
from webapp.experiments.models import Cell
from webapp.jobs.lease import owner_of
from webapp.runs import closing
from webapp.runs import services as runs
from webapp.runs.models import Run
from webapp.runs.requests import RunRequest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nobody_hears")]
WORLDS = ["predicted", "nodes"]


@pytest.fixture(autouse=True)
def free_worker(monkeypatch) -> None:
    """No run that somebody asked for waits for the worker, and nobody hears of those that are queued."""
    monkeypatch.setattr(emulations.waiting, "fleet", list)
    monkeypatch.setattr(emulations.waiting, "is_anything_possible", lambda fleet: False)
    monkeypatch.setattr(emulations.runs, "queue", lambda run: None)


def lab(*boards: str) -> dict[str, Any]:
    """The cluster lab-3 with its devices bound to these boards."""
    cluster = topologies.load("lab-3")
    bound = zip(cluster.devices, boards, strict=True)
    devices = tuple(device.model_copy(update={"node": board}) for device, board in bound)
    document: dict[str, Any] = cluster.model_copy(update={"devices": devices}).model_dump(mode="json")
    return document


def on_boards(owner: User, cluster: Any, rates: list[float], name: str = "desk") -> list[Cell]:
    """The cells of the points that are to run on boards, one for each rate."""
    base = BASE | {"cluster": cluster, "strategy": "single"}
    factors = [RATES | {"values": rates}]
    experiment = stored(owner, name=name, factors=factors, base=base, worlds=WORLDS)
    return list(executions.carry_out(experiment, None, "nodes").cells.filter(world="nodes"))


def joined(owner: User, *names: str) -> None:
    for name in names:
        nodes.add(name, owner)
        come(name)


def come(name: str) -> None:
    Node.objects.filter(name=name).update(connection=f"of {name}", seen_at=timezone.now())


def leave(name: str) -> None:
    Node.objects.filter(name=name).update(connection="")


def test_drawn_devices_and_unknown_boards_are_refused_by_their_names(anna: User) -> None:
    with pytest.raises(SpecError, match=r"No point can run on boards: .* bound to a board"):
        on_boards(anna, "lab-3", [1e7])
    joined(anna, "pi-1", "pi-2")
    with pytest.raises(SpecError, match="the board pi-3, which this server does not know"):
        on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7], name="other")
    assert not Cell.objects.filter(world="nodes").exists() and emulations.feed(ME) is None


def test_a_board_is_several_devices_and_no_more_than_it_has_cores(anna: User) -> None:
    joined(anna, "pi-1", "pi-2")
    Node.objects.filter(name="pi-1").update(hello={"cores": 1})
    with pytest.raises(SpecError, match=r"2 devices are bound to the board pi-1, which has 1 core,"):
        on_boards(anna, lab("pi-1", "pi-2", "pi-1"), [1e7], name="crowded")
    Node.objects.filter(name="pi-1").update(hello={"cores": 2})
    (cell,) = on_boards(anna, lab("pi-1", "pi-2", "pi-1"), [1e7])
    run = emulations.feed(ME)
    assert run is not None and run.pk == cell.run_id


def test_a_point_waits_until_all_of_its_boards_are_there(anna: User) -> None:
    joined(anna, "pi-1", "pi-2", "pi-3")
    leave("pi-2")
    (cell,) = on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7])
    assert emulations.feed(ME) is None and state(cell.run) == "waiting"
    come("pi-2")
    run = emulations.feed(ME)
    assert run is not None and run.pk == cell.run_id
    assert points.spec_of(run).on_nodes and run.digest == cell.digest


def test_points_spread_over_the_boards_that_are_free(anna: User) -> None:
    """Two points want the same boards, the third others."""
    joined(anna, *(f"pi-{number}" for number in range(1, 7)))
    first, second = on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7, 1e8])
    (apart,) = on_boards(anna, lab("pi-4", "pi-5", "pi-6"), [1e7], name="others")
    begun = [emulations.feed(ME), emulations.feed(ME), emulations.feed(ME)]
    assert {run.pk for run in begun if run} == {first.run_id, apart.run_id} and None in begun
    assert state(second.run) == "waiting"
    Run.objects.filter(pk=first.run_id).update(status="finished")
    again = emulations.feed(ME)
    assert again is not None and again.pk == second.run_id


def test_a_waiting_point_on_boards_holds_up_no_emulation(anna: User) -> None:
    joined(anna, "pi-1", "pi-2", "pi-3")
    on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7])
    leave("pi-1")
    experiment = stored(
        anna, name="emulated", factors=[RATES | {"values": [1e7]}], base=BASE | {"strategy": "single"}
    )
    execution = executions.carry_out(experiment, None)
    run = emulations.feed(ME)
    assert run is not None and run.pk == execution.cells.get(world="emulated").run_id


def test_a_point_taken_at_the_same_time_with_the_same_board_waits_again(anna: User, monkeypatch) -> None:
    """Both workers have looked before either took its point."""
    joined(anna, "pi-1", "pi-2", "pi-3")
    _, second = on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7, 1e8])
    assert emulations.feed(ME) is not None
    assert emulations.start(second.run_id or 0, ME) is None
    assert state(second.run) == "waiting" and second.run.attempts == 0


@pytest.mark.parametrize("ask", ["again", "retry"])
def test_a_point_that_was_refused_for_an_unknown_board_is_accepted_when_that_is_added(
    anna: User, ask: str
) -> None:
    joined(anna, "pi-1", "pi-2", "pi-3")
    levels = [{"label": board, "value": lab("pi-1", "pi-2", board)} for board in ("pi-3", "pi-4")]
    factors = [{"name": "desk", "paths": ["cluster"], "values": levels}]
    base = {key: value for key, value in BASE.items() if key != "cluster"} | {"strategy": "single"}
    experiment = stored(anna, factors=factors, base=base, worlds=WORLDS)
    execution = executions.carry_out(experiment, None, "nodes")
    accepted, refused = execution.cells.filter(world="nodes")
    assert accepted.run and not refused.run and "pi-4" in refused.problem
    joined(anna, "pi-4")
    if ask == "retry":
        assert executions.retry(experiment, stale=False) == 1
    else:
        executions.carry_out(experiment, None, "nodes")
    kept, cell = execution.cells.filter(world="nodes")
    assert kept.pk == accepted.pk and cell.problem == "" and state(cell.run) == "waiting"


def test_a_point_whose_board_is_revoked_fails_with_a_sentence_and_can_be_retried(anna: User) -> None:
    joined(anna, "pi-1", "pi-2", "pi-3")
    (cell,) = on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7])
    Node.objects.get(name="pi-2").delete()
    emulations.look_after(ME, 1)
    assert state(cell.run) == "failed" and "The board pi-2 was revoked" in cell.run.error
    joined(anna, "pi-2")
    assert executions.retry(cell.execution.experiment, stale=False) == 1
    run = emulations.feed(ME)
    assert run is not None and run.digest == cell.digest


def test_a_point_has_a_row_in_both_worlds(anna: User, alice: Browser) -> None:
    joined(anna, "pi-1", "pi-2", "pi-3")
    (cell,) = on_boards(anna, lab("pi-1", "pi-2", "pi-3"), [1e7])
    run = emulations.feed(ME)
    assert run is not None
    run = emulations.waiting.claim(run.pk, ME)
    closing.finish(owner_of(run), predict(points.spec_of(run)).model_copy(update={"world": "nodes"}))
    rows = alice.get(f"/experiments/{cell.execution.experiment_id}/rows").json()["rows"]
    by_world = {row["world"]: row for row in rows}
    assert {world: row["digest"] for world, row in by_world.items()} == dict.fromkeys(WORLDS, cell.digest)
    assert by_world["nodes"]["state"] == "done" and by_world["nodes"]["metrics"]["latency_s"] > 0


def test_a_run_that_somebody_asks_for_on_boards_is_of_that_world(anna: User) -> None:
    request = RunRequest.parse(request_body(), "test")
    worlds = [runs.store(request, spec, None, anna).world for spec in (run_spec(), on_nodes(run_spec()))]
    assert worlds == ["emulated", "nodes"]


def test_the_api_asks_for_the_world(anna: User, alice: Browser) -> None:
    experiment = alice.post("/experiments", {"experiment": fields(worlds=WORLDS)}).json()
    answer = alice.post(f"/experiments/{experiment['id']}/emulate", {"choose": "all", "world": "nodes"})
    assert answer.status_code == 422 and "bound to a board" in answer.content.decode()
