"""Requests that only an attacker or a broken program sends: a sentence refuses each, or its time ends."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn
from asgiref.testing import ApplicationCommunicator
from django.test import Client

from tests.support.web import Browser, request_body
from webapp.asgi import application
from webapp.http import body_limit, server

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 600


@pytest.mark.parametrize("path", ["/scenarios", "/models", "/models/tiny-vit/picture"])
@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary="])
def test_a_form_without_a_boundary_is_refused(alice: Browser, path: str, kind: str) -> None:
    answer = alice.client.post(
        f"/api{path}",
        b"x",
        content_type=kind,
        headers={"X-CSRFToken": alice.client.cookies["csrftoken"].value},
    )
    assert answer.status_code == 400 and "form cannot be read" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/", "/docs/", "/healthz/", "/static/", "/admin/", "/api/", "/v1/models/"])
@pytest.mark.parametrize("nul", ["%00", "?q=%00"])
def test_an_address_with_a_nul_is_refused_in_a_sentence_whoever_asks(path: str, nul: str) -> None:
    answer = Client(raise_request_exception=False).get(path + nul)
    assert (answer.status_code, b"NUL character" in answer.content) == (400, True)


def test_a_wrong_part_of_an_address_is_named_with_what_it_is(alice: Browser) -> None:
    answer = alice.get("/runs/export/xml", ids="1")
    assert answer.json()["detail"] == "kind: expected 'csv' or 'parquet', got 'xml'."


def test_a_refusal_below_v1_has_openai_s_form() -> None:
    answer = Client().get("/v1/models/%00")
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert "NUL character" in error["message"]


@pytest.mark.parametrize("path", ["/login", "/runs", "/clusters"])
def test_a_body_with_a_nul_is_refused_in_a_sentence(alice: Browser, path: str) -> None:
    answer = alice.post(path, {"username": "a\0", "password": "\0"})
    assert answer.status_code == 400 and "NUL character" in answer.json()["detail"]


def test_a_form_with_a_nul_is_refused_by_the_administration() -> None:
    answer = Client().post("/admin/login/", {"username": "a\0", "password": "b"})
    assert answer.status_code == 200 and b"Null characters are not allowed" in answer.content


def cluster_with(**link: float) -> dict[str, Any]:
    cluster = request_body()["cluster"]
    cluster["links"][0] |= link
    return cluster


@pytest.mark.parametrize(
    ("link", "path", "expected"),
    [
        ({"bit_per_s": 5e-324}, "links[0].bit_per_s", "expected 1e-30 to 1e+30, got 4.94066e-324"),
        ({"bit_per_s": 1e308}, "links[0].bit_per_s", "expected 1e-30 to 1e+30, got 1e+308"),
        ({"delay_s": 1e308}, "links[0].delay_s", "expected 1e-30 to 1e+30"),
        ({"loss_frac": 0.99}, "links[0].loss_frac", "at most 0.9; remove a link that carries nothing"),
    ],
)
def test_a_number_that_breaks_every_planner_is_refused_with_its_field(
    alice: Browser, link: dict[str, float], path: str, expected: str
) -> None:
    cluster = cluster_with(**link)
    for name, answer in (
        ("cluster", alice.post("/runs", request_body(cluster=cluster))),
        ("spec", alice.post("/clusters", {"spec": cluster})),
    ):
        assert answer.status_code == 422, answer.content
        fields = {field["path"]: field["message"] for field in answer.json()["fields"]}
        assert expected in fields[f"{name}.{path}"]


def test_a_change_that_loses_nearly_everything_is_refused(alice: Browser) -> None:
    change = {"kind": "set_loss", "at_s": 1, "link": "desk--hub", "loss_frac": 0.95}
    answer = alice.post("/runs", request_body(scenario={"changes": [change]}))
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["path"] == "scenario.changes[0].loss_frac"


@pytest.mark.parametrize("name", ["red \x1b[31m", "two\nlines", "gpj.\u202eexe", "\u2066a", "a\u2028b"])
def test_a_name_that_is_more_than_it_shows_is_refused(alice: Browser, live_redis: Any, name: str) -> None:
    made = alice.post("/runs", request_body(name="Zürich 東京 \u200fשלום"))
    assert made.status_code == 201, made.content
    cluster = request_body()["cluster"] | {"title": name}
    for answer in (
        alice.post("/runs", request_body(name=name)),
        alice.post("/runs", request_body(tags=[name])),
        alice.patch(f"/runs/{made.json()['id']}", {"name": name}),
        alice.post("/clusters", {"spec": cluster}),
    ):
        assert answer.status_code == 422 and "expected one line of plain text" in answer.json()["detail"]


async def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODY_S", 0.05)
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/api/login",
        "raw_path": b"/api/login",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-length", b"1000")],
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 80),
    }
    client = ApplicationCommunicator(application, scope)
    await client.send_input({"type": "http.request", "body": b"{", "more_body": True})
    assert (await client.receive_output(PATIENCE_S))["status"] == 408


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHost: ", b"GET /api/session HTTP/1.1\r\nHost: x\r\n\r\nGET"]
)
async def test_half_a_request_does_not_keep_its_connection(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.3)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(application, http=server.ImpatientHttp, lifespan="off", log_level="warning")
        serving = uvicorn.Server(config)
        serving.install_signal_handlers = lambda: None  # type: ignore[method-assign]
        task = asyncio.create_task(serving.serve(sockets=[listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_S):
            try:
                while await reader.read(1 << 16):
                    pass  # the answer to what was whole
            except ConnectionResetError:
                pass
        writer.close()
        serving.should_exit = True
        await task
