"""Log-in with an OpenID provider, which runs on loopback here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support import openid_urls
from tests.support.openid_provider import CLIENT, SECRET, Provider, provider
from tests.support.web import person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lab(settings: Any) -> Iterator[Provider]:
    with provider() as server:
        app = settings.OIDC_APP | {"client_id": CLIENT, "secret": SECRET}
        app["settings"] = {"server_url": server.issuer}
        settings.OIDC_ISSUER, settings.OIDC_NAME = server.issuer, "the lab's account"
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app], "OAUTH_PKCE_ENABLED": True}}
        settings.ROOT_URLCONF = openid_urls.__name__
        yield server


def logged_in(lab: Provider) -> Client:
    browser = Client()
    way = browser.get("/api/login").json()["provider"]
    assert way["name"] == "the lab's account"
    sent = browser.get(way["address"])
    back = browser.get(lab.agree(sent["Location"]))
    assert (back.status_code, back.get("Location")) == (302, "/"), back.content
    return browser


def test_who_comes_for_the_first_time_gets_an_account_and_has_it_again_the_next_time(
    lab: Provider, settings: Any
) -> None:
    settings.OIDC_ROLE = "operator"
    session = logged_in(lab).get("/api/session").json()
    assert (session["user"], session["role"]) == ("grace", "operator")
    assert not User.objects.get(username="grace").has_usable_password()
    lab.person |= {"preferred_username": "hopper", "email": "other@lab.example"}
    assert logged_in(lab).get("/api/session").json()["user"] == "grace"
    assert User.objects.count() == 1


def test_nobody_becomes_somebody_who_is_here_by_their_name_or_address(lab: Provider) -> None:
    admin = User.objects.create_superuser("grace", email="grace@lab.example", password="x")
    session = logged_in(lab).get("/api/session").json()
    assert session["user"] != "grace" and session["role"] == "viewer"
    assert User.objects.exclude(pk=admin.pk).count() == 1


def test_a_link_does_not_give_an_account_to_who_is_logged_in_at_the_provider(lab: Provider) -> None:
    person("eve", "operator")
    eve = Client()
    eve.force_login(User.objects.get(username="eve"))
    answer = eve.get(lab.agree(eve.get("/sso/oidc/lab/login/?process=connect")["Location"]))
    assert answer.status_code == 403 and b"log out first" in answer.content
    assert logged_in(lab).get("/api/session").json()["user"] == "grace"


@pytest.mark.parametrize("fault", ["another audience", "another state", "inactive"])
def test_an_answer_that_is_not_for_this_server_logs_nobody_in(lab: Provider, fault: str) -> None:
    if fault == "inactive":
        logged_in(lab)
        User.objects.update(is_active=False)
    if fault == "another audience":
        lab.audience = "another program"
    browser = Client(raise_request_exception=False)
    back = lab.agree(browser.get("/sso/oidc/lab/login/")["Location"])
    browser.get(back.replace("state=", "state=x") if fault == "another state" else back)
    assert browser.get("/api/session").status_code == 401


def test_a_provider_that_is_away_is_said_in_a_sentence(lab: Provider, settings: Any) -> None:
    app = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]
    app["settings"] = {"server_url": "http://127.0.0.1:1"}
    answer = Client().get("/sso/oidc/lab/login/")
    assert answer.status_code == 503 and b"does not answer: try again" in answer.content


@pytest.mark.parametrize("person", [{"preferred_username": "grace"}, ["grace"]])
def test_a_provider_that_does_not_say_who_comes_logs_nobody_in_and_is_said_in_a_sentence(
    lab: Provider, person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = lab.documents() | {"/userinfo": person}
    monkeypatch.setattr(lab, "documents", lambda: documents)
    browser = Client(raise_request_exception=False)
    answer = browser.get(lab.agree(browser.get("/sso/oidc/lab/login/")["Location"]))
    assert answer.status_code == 502 and b"log in with a password" in answer.content
    assert not User.objects.exists()


def test_without_a_provider_there_is_no_such_way() -> None:
    person("eve", "operator")
    assert Client().get("/api/login").json() == {"provider": None}
    assert b"openid" not in Client().get("/sso/oidc/lab/login/").content
    assert Client().get("/sso/oidc/lab/login/").status_code in (200, 503)  # the front end, as any address
