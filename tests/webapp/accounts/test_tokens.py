"""API tokens: what a program may do with one, and what is kept of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from tests.support import experiments
from tests.support.web import PASSWORD, Browser, person, request_body
from webapp.accounts.models import ApiToken


def secret_of(browser: Browser, role: str = "operator", name: str = "script") -> str:
    response = browser.post("/account/tokens", {"name": name, "role": role})
    assert response.status_code == 201, response.content
    return response.json()["secret"]


def send(method: str, path: str, secret: str, body: Any = None) -> HttpResponse:
    """As a program does: no cookies, no CSRF token."""
    client = Client(enforce_csrf_checks=True)
    return client.generic(
        method,
        f"/api{path}",
        data="" if body is None else json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )


def drawing(name: str) -> dict[str, Any]:
    return {"spec": request_body()["cluster"] | {"name": name}}


def test_a_program_with_a_token_acts_for_its_user(alice: Browser) -> None:
    created = send("POST", "/clusters", secret_of(alice), drawing("by-program"))
    assert created.status_code == 201
    assert created.json()["owner"] == "alice"


def test_the_secret_is_shown_once_and_not_stored(alice: Browser) -> None:
    secret = secret_of(alice)
    assert secret not in alice.get("/account").content.decode()
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM accounts_apitoken")
        assert secret not in str(cursor.fetchall())


def test_a_revoked_token_is_refused(alice: Browser) -> None:
    secret = secret_of(alice)
    (token,) = alice.get("/account").json()["tokens"]
    assert alice.delete(f"/account/tokens/{token['id']}").status_code == 204
    response = send("GET", "/runs", secret)
    assert response.status_code == 401
    assert "unknown or was revoked" in response.json()["detail"]


def test_a_bad_secret_is_refused_also_beside_a_session(alice: Browser) -> None:
    response = alice.client.get("/api/runs", headers={"Authorization": "Bearer loom_guess"})
    assert response.status_code == 401


def test_nobody_revokes_the_token_of_another(alice: Browser, victor: Browser) -> None:
    secret = secret_of(alice)
    token = ApiToken.objects.get()
    assert victor.delete(f"/account/tokens/{token.pk}").status_code == 404
    assert send("GET", "/runs", secret).status_code == 200


def test_a_token_for_looking_changes_nothing(alice: Browser) -> None:
    secret = secret_of(alice, role="viewer")
    assert send("GET", "/clusters", secret).status_code == 200
    response = send("POST", "/clusters", secret, drawing("no"))
    assert response.status_code == 403
    assert "with this token" in response.json()["detail"]


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_a_viewer_gets_no_token_above_the_own_role(victor: Browser, role: str) -> None:
    response = victor.post("/account/tokens", {"name": "more", "role": role})
    assert response.status_code == 422
    assert response.json()["fields"] == [{"path": "role", "message": "at most viewer"}]


def test_a_token_loses_the_rights_that_its_user_loses(alice: Browser) -> None:
    secret = secret_of(alice)
    User.objects.get(username="alice").groups.remove(Group.objects.get(name="operator"))
    assert send("POST", "/clusters", secret, drawing("no")).status_code == 403
    User.objects.filter(username="alice").update(is_active=False)
    assert send("GET", "/clusters", secret).status_code == 401


def test_an_administrators_token_for_operators_is_not_an_administrators(alice: Browser) -> None:
    User.objects.create_superuser("root", password=PASSWORD)
    root = Browser()
    root.log_in("root")
    secret = secret_of(root, role="operator")
    experiment = {"experiment": experiments.fields()}
    made = alice.post("/experiments", experiment)
    assert made.status_code == 201, made.content
    assert send("DELETE", f"/experiments/{made.json()['id']}", secret).status_code == 403
    assert root.delete(f"/experiments/{made.json()['id']}").status_code == 204


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/account"), ("POST", "/account/tokens"), ("POST", "/account/password"), ("POST", "/logout")],
)
def test_a_token_is_no_log_in(alice: Browser, method: str, path: str) -> None:
    """Whoever finds one cannot make others with it, nor lock its owner out."""
    body = {"name": "another", "role": "viewer", "current": PASSWORD, "new": "anvil basket 77"}
    assert send(method, path, secret_of(alice), body).status_code == 401


def test_the_last_use_is_noted_at_most_once_a_minute(alice: Browser) -> None:
    secret = secret_of(alice)
    assert ApiToken.objects.get().last_used_at is None
    send("GET", "/session", secret)  # a route without a guard
    send("GET", "/runs", secret)
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    send("GET", "/runs", secret)
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    send("GET", "/runs", secret)
    assert ApiToken.objects.get().last_used_at > first


@pytest.mark.django_db(transaction=True)
def test_a_token_reads_also_while_the_database_cannot_be_written(alice: Browser) -> None:
    """A locked file, a full disk: the time of its use is not worth a refusal."""
    secret = secret_of(alice)

    def refuse_writes(execute: Any, sql: str, *more: Any) -> Any:
        if sql.startswith("UPDATE"):
            raise OperationalError("database is locked")
        return execute(sql, *more)

    with connection.execute_wrapper(refuse_writes):
        assert send("GET", "/clusters", secret).status_code == 200
    assert ApiToken.objects.get().last_used_at is None


def test_nobody_has_more_than_twenty_tokens(alice: Browser) -> None:
    for number in range(20):
        secret_of(alice, name=f"script {number}")
    response = alice.post("/account/tokens", {"name": "one more", "role": "viewer"})
    assert response.status_code == 409
    assert "revoke one first" in response.json()["detail"]


# Password -----------------------------------------------------------------------------------------
def test_a_new_password_ends_the_other_sessions_and_keeps_this_one(alice: Browser) -> None:
    elsewhere = Browser()
    elsewhere.log_in("alice")
    response = alice.post("/account/password", {"current": PASSWORD, "new": "anvil basket 77"})
    assert response.status_code == 204
    assert alice.get("/account").status_code == 200
    assert elsewhere.get("/account").status_code == 401
    assert Browser().log_in("alice").status_code == 401
    assert Browser().log_in("alice", "anvil basket 77").status_code == 200


def test_a_password_is_not_changed_without_the_present_one(alice: Browser) -> None:
    response = alice.post("/account/password", {"current": "guess", "new": "anvil basket 77"})
    assert response.status_code == 422
    assert response.json()["fields"] == [{"path": "current", "message": "is wrong"}]
    assert Browser().log_in("alice").status_code == 200


def test_a_weak_password_is_refused_with_the_reason(alice: Browser) -> None:
    response = alice.post("/account/password", {"current": PASSWORD, "new": "12345"})
    assert response.status_code == 422
    assert "too short" in response.json()["detail"]


def test_guessing_the_present_password_ends_as_guessing_at_the_log_in_does(alice: Browser) -> None:
    person("bob", "operator")
    answers = [
        alice.post("/account/password", {"current": f"guess {number}", "new": "anvil basket 77"}).status_code
        for number in range(7)
    ]
    assert answers[0] == 422
    assert answers[-1] == 429
