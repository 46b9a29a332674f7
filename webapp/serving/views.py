"""/v1: completions, chat completions and models in the form of OpenAI's API, for API tokens alone.

A run that serves is a model here, by its name or its number. No cookie opens these addresses, so no other
site can make a browser use them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import wraps
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from ninja.errors import HttpError

from engine.domain.errors import EdgeLoomError, SpecError
from webapp.accounts.access import OperatorToken, Token
from webapp.runs.models import Run
from webapp.runs.schemas import name_of
from webapp.serving import served
from webapp.serving.answer import Answer, pieces
from webapp.serving.bodies import Chat, Completion, parse
from webapp.serving.openai_form import DONE, Form, Kind, error_body, error_response, event

logger = logging.getLogger(__name__)

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def openai_view(method: str | None, guard: Token) -> Callable[[View], View]:
    """A view of `method` (None: of any) whose every refusal has OpenAI's form. It gets the user after the
    request.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        async def answered(request: HttpRequest, *arguments: str) -> HttpResponseBase:
            try:
                if method is not None and request.method != method:
                    raise HttpError(405, f"{request.path} takes {method}, not {request.method}.")
                user = await database_sync_to_async(_user)(request, guard)
                return await view(request, user, *arguments)
            except (EdgeLoomError, HttpError) as error:
                return error_response(error)
            except Exception as error:
                response = error_response(error)
                if response.status_code == 500:
                    logger.exception("%s %s broke", request.method, request.path)
                return response

        return answered

    return decorate


def _user(request: HttpRequest, guard: Token) -> User:
    """The person who sends the request. Raises 401, 403, `TooMany`."""
    user = guard(request)
    if user is None:
        raise HttpError(401, "The request has no API token: send Authorization: Bearer loom_…")
    assert isinstance(user, User)
    return user


@openai_view("POST", OperatorToken())
async def completions(request: HttpRequest, user: User) -> HttpResponseBase:
    return await _answer(user, "completion", parse(Completion, request.body))


@openai_view("POST", OperatorToken())
async def chat_completions(request: HttpRequest, user: User) -> HttpResponseBase:
    return await _answer(user, "chat", parse(Chat, request.body))


@openai_view("GET", Token())
async def models(request: HttpRequest, user: User) -> HttpResponse:
    found = await database_sync_to_async(lambda: [_model(run) for run in served.serving()])()
    return JsonResponse({"object": "list", "data": found})


@openai_view("GET", Token())
async def model(request: HttpRequest, user: User, name: str) -> HttpResponse:
    return JsonResponse(await database_sync_to_async(lambda: _model(served.find(name)))())


@openai_view(None, Token())
async def unknown(request: HttpRequest, user: User, path: str) -> HttpResponse:
    raise HttpError(404, f"/v1/{path} does not exist: there are completions, chat/completions and models.")


def _model(run: Run) -> dict[str, Any]:
    owner = run.owner.username if run.owner else ""
    created_s = int((run.started_at or run.created_at).timestamp())
    return {"id": name_of(run), "object": "model", "created": created_s, "owned_by": owner, "run": run.pk}


async def _answer(user: User, kind: Kind, body: Completion | Chat) -> HttpResponseBase:
    run = await database_sync_to_async(served.find)(body.model)
    asked = body.tokens_asked()
    if asked and body.new_tokens is None:  # a default, not what somebody asked for
        asked = min(asked, run.spec["workload"]["new_tokens"])
    how = {"new_tokens": asked, "stops": not body.ignore_eos, "sampling": body.sampling}
    command = body.prompt_of() | how
    answer, created_s = Answer(), int(time.time())
    prefix = "chatcmpl" if kind == "chat" else "cmpl"
    form = Form(kind, f"{prefix}-{run.pk}-{time.time_ns():x}", created_s, body.model)
    feed = pieces(run, user, command, body.stop, answer)
    try:
        await anext(feed)  # taken, or refused with a status of its own
    except SpecError as error:
        raise body.named(error) from error
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        stream = _stream(feed, form, answer, with_usage)
        return StreamingHttpResponse(
            stream, content_type="text/event-stream", headers={"Cache-Control": "no-cache"}
        )
    text = "".join([piece async for piece in feed])
    return JsonResponse(form.whole(text, answer))


async def _stream(
    feed: AsyncGenerator[str], form: Form, answer: Answer, with_usage: bool
) -> AsyncGenerator[str]:
    """An answer as server-sent events up to [DONE]; an answer that is not completed ends with an error."""
    try:
        yield event(form.piece("", answer, first=True))
        async for text in feed:
            yield event(form.piece(text, answer))
        yield event(form.piece("", answer, last=True))
        if with_usage:
            yield event(form.usage_piece(answer))
        yield DONE
    except EdgeLoomError as error:
        yield event(error_body(error))
    finally:
        await feed.aclose()
