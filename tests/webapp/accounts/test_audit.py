"""The log of who did what, and who may read it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.support.web import PASSWORD, Browser, request_body
from webapp.accounts import audit
from webapp.accounts.models import AuditEntry
from webapp.runs.models import Run


@pytest.fixture
def admin(db: None) -> Browser:
    User.objects.create_superuser("root", password=PASSWORD)
    browser = Browser()
    browser.log_in("root")
    return browser


def lines(admin: Browser, **query: Any) -> list[str]:
    rows = admin.get("/audit", **query).json()
    return [f"{row['who']} {row['action']} {row['what']}".strip() for row in rows]


def test_log_ins_wrong_passwords_and_log_outs_are_noted(admin: Browser, alice: Browser) -> None:
    assert alice.log_in("alice").status_code == 200
    Browser().log_in("alice", "guess")
    Browser().log_in("hunter2", "alice")  # the password in the wrong field
    alice.post("/logout")
    assert lines(admin)[:4] == [
        "alice logged out",
        "hun… (no such user) gave a wrong password from 127.0.0.1",
        "alice gave a wrong password from 127.0.0.1",
        "alice logged in from 127.0.0.1",
    ]


@pytest.mark.redis
def test_live_changes_and_deletions_are_noted_with_who_made_them(
    admin: Browser, alice: Browser, live_redis: Any
) -> None:
    cluster = alice.post("/clusters", {"spec": request_body()["cluster"] | {"name": "hers"}}).json()["id"]
    run = alice.post("/runs", request_body(name="first")).json()["id"]
    Run.objects.filter(pk=run).update(status="running")
    command = {
        "kind": "slow_device",
        "device": request_body()["cluster"]["devices"][0]["name"],
        "factor": 2.0,
    }
    assert alice.post(f"/runs/{run}/changes", {"command": command}).status_code == 202
    Run.objects.filter(pk=run).update(status="finished")
    secret = alice.post("/account/tokens", {"name": "script", "role": "operator"}).json()["secret"]
    by_token = {"Authorization": f"Bearer {secret}"}
    assert alice.client.delete(f"/api/runs/{run}", headers=by_token).status_code == 204
    admin.delete(f"/clusters/{cluster}")
    assert lines(admin)[:4] == [
        "root deleted cluster hers",
        f"alice by token deleted run {run}, first",
        "alice made a token script, operator",
        f'alice changed run {run}: {{"kind": "slow_device", "device": "{command["device"]}", "factor": 2.0}}',
    ]


def test_what_was_refused_is_not_noted_as_done(admin: Browser, alice: Browser) -> None:
    cluster = admin.post("/clusters", {"spec": request_body()["cluster"] | {"name": "his"}}).json()["id"]
    assert alice.delete(f"/clusters/{cluster}").status_code == 403
    assert not any("deleted" in line for line in lines(admin))


def test_only_administrators_read_the_log(alice: Browser, victor: Browser) -> None:
    for browser in (alice, victor):
        refused = browser.get("/audit")
        assert refused.status_code == 403
        assert "only administrators may read this" in refused.json()["detail"]


def test_older_lines_come_page_by_page(admin: Browser) -> None:
    for number in range(5):
        audit.add("ada", "did", str(number))
    rows = admin.get("/audit", limit=2).json()
    assert [row["what"] for row in rows] == ["4", "3"]
    assert [row["what"] for row in admin.get("/audit", before=rows[-1]["id"], limit=2).json()] == ["2", "1"]


def test_the_log_has_an_end(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "KEPT", 3)
    monkeypatch.setattr(audit, "PRUNED_EVERY", 5)
    for number in range(20):
        audit.add("ada", "did", str(number))
    assert 3 <= AuditEntry.objects.count() < 3 + 5
    assert AuditEntry.objects.first().what == "19"


def test_administrators_see_tokens_and_the_log_and_change_neither(admin: Browser) -> None:
    assert b"logged in" in admin.client.get("/admin/accounts/auditentry/").content
    assert admin.client.get("/admin/accounts/apitoken/").status_code == 200
    assert admin.client.get("/admin/accounts/auditentry/add/").status_code == 403
    assert admin.client.get("/admin/accounts/apitoken/add/").status_code == 403
