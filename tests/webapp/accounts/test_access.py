"""Who may do what: every route of the OpenAPI document, as nobody, as a viewer, and without a CSRF token."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client
from ninja.openapi.schema import OpenAPISchema

from tests.support.web import PASSWORD, Browser, person
from webapp.api import api

OPEN = {("get", "/api/session"), ("get", "/api/login"), ("post", "/api/login")}
READING = {
    ("post", "/api/clusters/validate"),
    ("post", "/api/clusters/shape"),
    ("post", "/api/logout"),
    ("post", "/api/advice"),
    ("post", "/api/advice/changes"),
    ("post", "/api/advice/question"),
    ("post", "/api/advice/why"),
    ("post", "/api/experiments/check"),
    ("post", "/api/experiments/factors"),
    ("post", "/api/experiments/{experiment_id}/figure"),
    ("post", "/api/experiments/{experiment_id}/table"),
    ("post", "/api/account/password"),
    ("post", "/api/account/tokens"),
    ("delete", "/api/account/tokens/{token_id}"),
    ("post", "/api/runs/averages"),
}
"""Unsafe methods that change nothing stored but one's own account: viewers may."""


class Routes(OpenAPISchema):
    """Paths and methods without what they take and answer: describing that takes seconds, and every process
    that runs tests imports this file.
    """

    def operation_details(self, operation: Any) -> dict[str, Any]:
        return {}


def routes() -> list[tuple[str, str]]:
    paths = Routes(api, "/api/")["paths"]
    return [(method, path) for path, methods in paths.items() for method in methods]


def concrete(path: str) -> str:
    return re.sub(r"\{\w+\}", "1", path)


CLOSED = [route for route in routes() if route not in OPEN]
UNSAFE = [route for route in CLOSED if route[0] != "get"]
WRITING = [route for route in UNSAFE if route not in READING]


def test_the_document_has_the_routes_that_this_file_talks_about() -> None:
    assert {*OPEN, *READING} <= set(routes())
    assert ("post", "/api/runs") in WRITING
    assert len(WRITING) >= 10


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_every_route_refuses_a_request_without_log_in(db: None, method: str, path: str) -> None:
    response = Client().generic(method.upper(), concrete(path), content_type="application/json")
    assert response.status_code == 401
    assert response.json() == {"detail": "Nobody is logged in: log in first.", "fields": []}


@pytest.mark.parametrize(("method", "path"), WRITING)
def test_a_viewer_changes_nothing(victor: Browser, method: str, path: str) -> None:
    response = victor.send(method.upper(), concrete(path).removeprefix("/api"), {})
    assert response.status_code == 403
    detail = response.json()["detail"]
    assert detail == "victor may look but not change: ask an administrator for the role operator."


@pytest.mark.parametrize(("method", "path"), UNSAFE)
def test_a_request_without_csrf_token_is_refused(alice: Browser, method: str, path: str) -> None:
    response = alice.client.generic(method.upper(), concrete(path), "{}", content_type="application/json")
    assert response.status_code == 403
    assert "CSRF" in response.json()["detail"]


def test_logging_in_needs_the_token_too(db: None) -> None:
    person("alice", "operator")
    response = Client(enforce_csrf_checks=True).post(
        "/api/login", {"username": "alice", "password": PASSWORD}, content_type="application/json"
    )
    assert response.status_code == 403


def test_the_session_says_who_is_logged_in_and_in_which_role(alice: Browser, victor: Browser) -> None:
    assert alice.get("/session").json()["user"] == "alice"
    assert alice.get("/session").json()["role"] == "operator"
    assert victor.get("/session").json()["role"] == "viewer"


def test_a_superuser_is_admin(db: None) -> None:
    User.objects.create_superuser("root", password=PASSWORD)
    assert Browser().log_in("root").json()["role"] == "admin"


def test_a_wrong_password_is_refused_in_one_sentence(db: None) -> None:
    person("alice", "operator")
    response = Browser().log_in("alice", "guess")
    assert response.status_code == 401
    assert response.json()["detail"] == "Wrong user name or password: try again."


def test_logging_out_ends_the_session(alice: Browser) -> None:
    assert alice.post("/logout").status_code == 204
    assert alice.get("/session").status_code == 401


def test_ensure_admin_makes_one_administrator_and_shows_the_password_once(db: None) -> None:
    first, second = StringIO(), StringIO()
    call_command("ensure_admin", stdout=first)
    call_command("ensure_admin", stdout=second)
    password = re.search(r"password (\S+)", first.getvalue()).group(1)
    assert Browser().log_in("admin", password).json()["role"] == "admin"
    assert second.getvalue() == ""
    assert set(Group.objects.values_list("name", flat=True)) == {"viewer", "operator"}


@pytest.mark.parametrize("path", ["/", "/runs/3", "/api/session", "/admin/login/"])
def test_every_page_forbids_foreign_scripts_and_framing(db: None, path: str) -> None:
    headers = Client().get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_index_answers_every_path_of_the_front_end(db: None, settings, tmp_path) -> None:
    settings.FRONTEND_DIST = tmp_path
    (tmp_path / "index.html").write_text("<title>EdgeLoom</title>")
    for path in ("/", "/clusters/1", "/runs/7/report"):
        response = Client().get(path)
        assert response.content == b"<title>EdgeLoom</title>"
        assert response.headers["Cache-Control"] == "no-cache"
        assert "csrftoken" in response.cookies


def test_without_a_built_front_end_the_index_says_what_to_do(db: None, settings, tmp_path) -> None:
    settings.FRONTEND_DIST = tmp_path
    response = Client().get("/")
    assert response.status_code == 503
    assert f"There are no pages in {tmp_path}".encode() in response.content
    assert b"./loom up" in response.content


def test_an_unknown_api_path_is_refused_in_the_form_of_the_api(db: None) -> None:
    response = Client().get("/api/nothing")
    assert response.status_code == 404
    assert "/api/nothing" in response.json()["detail"]


def test_the_documentation_is_for_people_who_are_logged_in(alice: Browser) -> None:
    assert Client().get("/api/openapi.json").status_code == 302
    assert alice.client.get("/api/openapi.json").json()["info"]["title"] == "EdgeLoom"
    assert b"swagger-ui" in alice.client.get("/api/docs").content


def test_a_host_name_that_is_not_allowed_is_refused(db: None) -> None:
    assert Client(headers={"Host": "evil.example"}).get("/api/session").status_code == 400
