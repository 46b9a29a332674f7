"""The advisor and the showcases over HTTP. Everybody who is logged in may ask: nothing is stored."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from engine.advice.replies import Reply
from engine.advice.values import Answer, Assessment, Change, Objective, Why
from engine.domain.showcase import Claim, Guide, Place, Showcase
from engine.domain.spec import RunSpec
from engine.strategies.registry import STRATEGIES
from topologies.showcases import showcase, showcases, to_fetch
from webapp.accounts.access import UserRequest
from webapp.advice import asking
from webapp.advice.requests import AdviceRequest, QuestionRequest, base_of
from webapp.base import budgets
from webapp.runs.requests import RunRequest, request_of, spec_of

router = Router(tags=["advice"])


class AdviceOut(Schema):
    """The strategies on a cluster, ranked. At least `simulated_tokens` of `new_tokens` were simulated; the
    others are taken to be like these. If it is not `finished`, there was no time left for some strategies:
    asked again, it goes on, and until then there is no `answer`.
    """

    by: Objective
    finished: bool
    answer: Answer | None
    rows: tuple[Assessment, ...]
    simulated_tokens: int
    new_tokens: int


class ChangesRequest(AdviceRequest):
    """A question about single changes. `rows` are what the advisor has answered for the same cluster, model
    and workload.
    """

    rows: tuple[Assessment, ...] = Field(max_length=2 * len(STRATEGIES))


class OtherRunOut(Schema):
    name: str
    title: str
    request: dict[str, Any] = Field(description="A RunRequest, with the cluster itself.")


class ShowcaseOut(Schema):
    name: str
    title: str
    look_for: str
    expected: str = Field(description="What to expect; figures, in braces, are predicted when asked for.")
    place: Place
    emulated: bool
    guide: Guide | None
    answer: str = Field(description="What the model answers, as a run has printed it, or an empty text.")
    request: dict[str, Any] = Field(description="A RunRequest, with the cluster itself.")
    others: list[OtherRunOut]
    claims: tuple[Claim, ...]
    to_fetch: str | None = Field(
        description="The model that answers questions, where it is not on this machine: for the demo."
    )


class ExpectedOut(Schema):
    expected: str = Field(description="What to expect of a showcase, with predicted figures.")


@router.post("/advice", response=AdviceOut)
def advise(request: UserRequest, body: AdviceRequest) -> dict[str, Any]:
    """Every strategy on this cluster, the best first, by prediction of a run's first tokens."""
    base = base_of(body)
    rows, finished = asking.assessed(base, body.by, request.auth.pk)
    return {
        "by": body.by,
        "finished": finished,
        # of some strategies alone nobody could say whether one device has room, or which is the best
        "answer": asking.answered(base, rows, body.by, request.auth.pk) if body.answer and finished else None,
        "rows": rows,
        "simulated_tokens": min((row.simulated_tokens for row in rows if row.simulated_tokens), default=0),
        "new_tokens": body.workload.new_tokens,
    }


@router.post("/advice/question", response=Reply)
def answer_question(request: UserRequest, body: QuestionRequest) -> Reply:
    """What to buy, the largest model, the link to upgrade, or what a token costs: in one sentence."""
    return asking.replied(base_of(body), body.asked, request.auth.pk)


@router.post("/advice/changes", response=list[Change])
def try_changes(request: UserRequest, body: ChangesRequest) -> list[Change]:
    """Try single changes of the cluster by prediction: the largest gain first."""
    return list(asking.changes_tried(base_of(body), body.rows, body.by, request.auth.pk))


@router.post("/advice/why", response=Why)
def explain(request: UserRequest, body: RunRequest) -> Why:
    """What binds each device under the run's plan, found by trying one unit more and one less."""
    spec = spec_of(body)
    budgets.check_advice(spec)
    return asking.explained(spec, request.auth.pk)


@router.get("/showcases", response=list[ShowcaseOut])
def list_showcases(request: HttpRequest) -> list[ShowcaseOut]:
    """The start page's run, reasons to distribute, and what every paper's method was invented for."""
    absent = next(iter(to_fetch()), None)
    return [_out(each, absent if each.place == "demo" else None) for each in showcases()]


@router.get("/showcases/{name}/expected", response=ExpectedOut)
def expect_of_showcase(request: UserRequest, name: str) -> dict[str, str]:
    """What the showcase and the runs beside it come to, by prediction."""
    return {"expected": asking.expected(showcase(name).name, request.auth.pk)}


def _out(shown: Showcase, absent: str | None) -> ShowcaseOut:
    others = [
        OtherRunOut(name=other.name, title=other.title, request=_request(other.spec, other.title))
        for other in shown.others
    ]
    return ShowcaseOut(
        name=shown.name,
        title=shown.title,
        look_for=shown.look_for,
        expected=shown.expected,
        place=shown.place,
        emulated=shown.emulated,
        guide=shown.guide,
        answer=shown.answer,
        request=_request(shown.spec, shown.title),
        others=others,
        claims=shown.claims,
        to_fetch=absent,
    )


def _request(spec: RunSpec, title: str) -> dict[str, Any]:
    return request_of(spec, title).model_dump(mode="json")
