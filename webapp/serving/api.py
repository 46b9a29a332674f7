"""What the live page of a run that serves asks: a request, its cancellation, the end of the service."""

from __future__ import annotations

from typing import Any

from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

from engine.domain.values import Whole
from webapp.accounts import audit, rights
from webapp.accounts.access import UserRequest, operator
from webapp.base import budgets
from webapp.runs import services
from webapp.serving import served

router = Router(tags=["serving"])


class Ask(Schema):
    text: str = Field(min_length=1, max_length=budgets.MAX_PROMPT_CHARS)
    new_tokens: Whole | None = Field(
        default=None, gt=0, description="As many as the run allows, if left out."
    )


class Asked(Schema):
    id: str = Field(description="The run's events tell by this id what becomes of the request.")


@router.post("/runs/{int:run_id}/requests", response={202: Asked}, auth=operator)
def ask_run(request: UserRequest, run_id: int, body: Ask) -> Status[dict[str, Any]]:
    """Send a request to a run that serves: its marks are `request_accepted`, `token_emitted`, …"""
    run = services.find(run_id)
    served.check_serves(run)
    name = served.new_id(request.auth)
    served.send(
        run, request.auth, {"kind": "ask", "id": name, "text": body.text, "new_tokens": body.new_tokens}
    )
    return Status(202, {"id": name})


@router.delete("/runs/{int:run_id}/requests/{name}", response={202: None}, auth=operator)
def withdraw_request(request: UserRequest, run_id: int, name: str) -> Status[None]:
    """Cancel a request: one's own, or any of one's own run."""
    run = services.find(run_id)
    if not served.is_of(name, request.auth):
        rights.require(request.auth, run.owner, f"Run {run.pk}")
    served.check_serves(run)
    served.send(run, request.auth, {"kind": "withdraw", "id": name})
    return Status(202, None)


@router.post("/runs/{int:run_id}/end-service", response={202: None}, auth=operator)
def end_service(request: UserRequest, run_id: int) -> Status[None]:
    """Take no more requests, cancel the open ones, and finish the run with its report."""
    run = services.owned(run_id, request.auth)
    served.check_serves(run)
    served.send(run, request.auth, {"kind": "end_service"})
    audit.note(request.auth, "ended the service", f"run {run_id}")
    return Status(202, None)
