"""Whatever the OpenAPI document allows is answered, never by a defect: schemathesis as viewer and operator.

`tests/ops/test_postgres.py` carries these tests out on PostgreSQL too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.http import HttpResponse
from django.test import Client
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support import experiments
from tests.support.web import Browser, person, request_body
from webapp.accounts import tokens
from webapp.api import api

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.specs.openapi.schemas import OpenApiSchema

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]

EXAMPLES = 3
"""Of each operation."""
EXPECTED_503 = ("No planning worker is running",)
NOT_SENT = ("POST /api/logout", "POST /api/account/password")
"""They end what the other requests need."""


def document() -> OpenApiSchema:
    import schemathesis  # here: two seconds, in each process that only looks for its tests

    described = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/"), default=str))
    return schemathesis.openapi.from_dict(described)


@pytest.fixture
def things_to_ask_for(live_redis: Any, alice: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run, a cluster and an experiment with number 1 or so; nobody is too fast."""
    monkeypatch.setattr("webapp.accounts.rates.check", lambda who, limit: None)
    spec = request_body()["cluster"] | {"name": "one"}
    assert alice.post("/clusters", {"spec": spec}).status_code == 201
    assert alice.post("/runs", request_body()).status_code == 201
    assert alice.post("/experiments", {"experiment": experiments.fields()}).status_code == 201


def test_no_request_that_the_document_allows_meets_a_defect(things_to_ask_for: None) -> None:
    """Each is sent by both: to make one takes longer than to answer it."""
    senders = [
        Sender(tokens.make(person(role, role), "schemathesis", role)[1]) for role in ("viewer", "operator")
    ]
    for found in document().get_all_operations():
        operation = found.ok()
        if operation.label in NOT_SENT:
            continue

        @seed(14)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(operation.as_strategy())
        def answered(case: Case) -> None:
            for send in senders:
                check(send(case), case)

        answered()
    for send in senders:
        assert send.seen >= 100
        assert {200, 422} <= send.codes
        assert 403 in send.codes  # a viewer's writes, an operator's look at the log


class Sender:
    """Sends cases in this process, and remembers what came back."""

    def __init__(self, secret: str):
        self.client = Client(raise_request_exception=False)
        self.secret = secret
        self.seen = 0
        self.codes: set[int] = set()

    def __call__(self, case: Case) -> HttpResponse:
        is_json = case.media_type == "application/json"
        body = json.dumps(case.body) if is_json and case.media_type else ""
        response = self.client.generic(
            case.method,
            case.formatted_path,
            data=body,
            content_type=case.media_type or "application/json",
            query_params=dict(case.query or {}),
            headers={"Authorization": f"Bearer {self.secret}"},
        )
        self.seen += 1
        self.codes.add(response.status_code)
        return response


def check(response: HttpResponse, case: Case) -> None:
    text = response.content.decode("utf-8", "replace")[:500]
    if response.status_code >= 500:
        is_expected = response.status_code == 503 and any(part in text for part in EXPECTED_503)
        assert is_expected, f"{case.method} {case.formatted_path} {case.query} {case.body}: {text}"
    if response.status_code >= 400 and not case.formatted_path.startswith("/api/openapi"):
        assert set(json.loads(response.content)) == {"detail", "fields"}, text
