"""Whose it is: what an operator may do with what another made, and the administrator with everything."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from tests.support.web import PASSWORD, Browser, person, request_body
from webapp.clusters.models import Cluster
from webapp.runs.models import Run

pytestmark = pytest.mark.redis


def logged_in(name: str) -> Browser:
    browser = Browser()
    assert browser.log_in(name).status_code == 200
    return browser


@pytest.fixture
def bob(db: None) -> Browser:
    person("bob", "operator")
    return logged_in("bob")


@pytest.fixture
def admin(db: None) -> Browser:
    User.objects.create_superuser("root", password=PASSWORD)
    return logged_in("root")


@pytest.fixture
def run_of_alice(alice: Browser) -> Run:
    owner = User.objects.get(username="alice")
    fields = {"request": {}, "spec": request_body(), "cluster_name": "x", "model": "x", "strategy": "x"}
    return Run.objects.create(owner=owner, **fields)


def drawing(title: str = "") -> dict[str, Any]:
    return {"spec": request_body()["cluster"] | {"name": "hers", "title": title}}


CHANGES = [
    ("PATCH", "", {"name": "mine"}),
    ("DELETE", "", {}),
    ("POST", "/cancel", {}),
    ("POST", "/changes", {"command": {"kind": "link_down", "link": "x"}}),
]


@pytest.mark.parametrize(("method", "action", "body"), CHANGES)
def test_an_operator_changes_no_run_of_another(
    run_of_alice: Run, bob: Browser, method: str, action: str, body: dict[str, Any]
) -> None:
    response = bob.send(method, f"/runs/{run_of_alice.pk}{action}", body)
    assert response.status_code == 403
    sentence = f"Run {run_of_alice.pk} belongs to alice: ask them or an administrator."
    assert response.json()["detail"] == sentence
    run_of_alice.refresh_from_db()
    assert (run_of_alice.name, run_of_alice.status) == ("", "queued")


@pytest.mark.parametrize("who", ["alice", "admin"])
def test_its_owner_and_the_administrator_change_a_run(
    run_of_alice: Run, request: pytest.FixtureRequest, who: str
) -> None:
    browser = request.getfixturevalue(who)
    assert browser.patch(f"/runs/{run_of_alice.pk}", {"name": "new"}).json()["name"] == "new"
    assert browser.delete(f"/runs/{run_of_alice.pk}").status_code == 204


def test_a_shared_installation_lets_every_operator_but_no_viewer(
    run_of_alice: Run, bob: Browser, victor: Browser, settings: Any
) -> None:
    settings.SHARED = True
    assert bob.get(f"/runs/{run_of_alice.pk}").json()["locked"] is None
    assert bob.patch(f"/runs/{run_of_alice.pk}", {"name": "ours"}).status_code == 200
    assert victor.patch(f"/runs/{run_of_alice.pk}", {"name": "no"}).status_code == 403


def test_lists_say_what_one_may_not_change_and_why(
    run_of_alice: Run, alice: Browser, bob: Browser, victor: Browser
) -> None:
    assert [row["locked"] for row in alice.get("/runs").json()] == [None]
    (of_another,) = bob.get("/runs").json()
    assert of_another["locked"] == "It belongs to alice: ask them or an administrator."
    assert "You may look but not change" in victor.get("/runs").json()[0]["locked"]


def test_a_run_whose_owner_is_gone_is_the_administrators(
    run_of_alice: Run, bob: Browser, admin: Browser
) -> None:
    User.objects.get(username="alice").delete()
    refused = bob.delete(f"/runs/{run_of_alice.pk}")
    assert refused.status_code == 403 and "belongs to nobody any more" in refused.json()["detail"]
    assert admin.delete(f"/runs/{run_of_alice.pk}").status_code == 204


# Clusters -------------------------------------------------------------------------------------------
def test_an_operator_changes_no_cluster_of_another(alice: Browser, bob: Browser, admin: Browser) -> None:
    number = alice.post("/clusters", drawing()).json()["id"]
    for response in (
        bob.put(f"/clusters/{number}", {**drawing("his"), "version": 1}),
        bob.delete(f"/clusters/{number}"),
    ):
        assert response.status_code == 403
        assert response.json()["detail"] == "hers belongs to alice: ask them or an administrator."
    assert bob.get(f"/clusters/{number}").json()["locked"].startswith("It belongs to alice")
    assert admin.put(f"/clusters/{number}", {**drawing("repaired"), "version": 1}).status_code == 200


def test_nobody_changes_a_template_and_everybody_may_copy_it(alice: Browser, admin: Browser) -> None:
    call_command("ensure_demo")
    template = Cluster.objects.get(name="lab-3")
    found = alice.get(f"/clusters/{template.pk}").json()
    assert found["template"] is True and "save it under another name" in found["locked"]
    edit = {"spec": found["spec"], "layout": found["layout"], "version": found["version"]}
    for browser in (alice, admin):
        assert browser.put(f"/clusters/{template.pk}", edit).status_code == 403
        assert browser.delete(f"/clusters/{template.pk}").status_code == 403
    copy = alice.post("/clusters", {"spec": found["spec"] | {"name": "mine"}})
    assert copy.status_code == 201 and copy.json()["locked"] is None
