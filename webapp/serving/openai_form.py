"""OpenAI's forms: answers, pieces of a stream, and errors.

https://platform.openai.com/docs/api-reference (completions, chat, streaming, errors).
"""

from __future__ import annotations

import json
from typing import Any, Literal

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import HttpResponse, JsonResponse
from ninja.errors import HttpError

from engine.domain.errors import EdgeLoomError, SpecError
from webapp.base.errors import Conflict, TooMany, Unavailable
from webapp.serving.answer import Answer, Interrupted
from webapp.serving.served import UnknownModel

Kind = Literal["completion", "chat"]
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}


def status_of(error: Exception) -> int:
    match error:
        case HttpError():
            return error.status_code
        case UnknownModel():
            return 404
        case SpecError():
            return 400
        case TooMany():
            return 429
        case Conflict():
            return 409
        case Unavailable() | Interrupted() | OperationalError():
            return 503
        case RequestDataTooBig():
            return 413
        case SuspiciousOperation():
            return 400
        case EdgeLoomError():
            return 409
    return 500


def error_body(error: Exception) -> dict[str, Any]:
    """An error in OpenAI's form, `{"error": {…}}`; the sentence of a defect is not shown."""
    status = status_of(error)
    param = error.fields[0][0] if isinstance(error, SpecError) and error.fields else None
    code = "model_not_found" if isinstance(error, UnknownModel) else None
    kind = TYPES.get(status, "server_error")
    return {"error": {"message": _sentence(error, status), "type": kind, "param": param, "code": code}}


def _sentence(error: Exception, status: int) -> str:
    if status == 500:
        return "The request broke: a defect of EdgeLoom, see the server's log."
    if isinstance(error, OperationalError):
        return "The database does not answer at the moment: try again."
    if isinstance(error, RequestDataTooBig):
        return "The body of the request is larger than the server takes: send less."
    return str(error)


def error_response(error: Exception) -> HttpResponse:
    response = JsonResponse(error_body(error), status=status_of(error))
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(error.retry_s)
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


class Form:
    """The answer to one request, named `name`, made at Unix time `created_s` by the run `model`."""

    def __init__(self, kind: Kind, name: str, created_s: int, model: str):
        self.kind: Kind = kind
        self.head = {"id": name, "created": created_s, "model": model}

    def whole(self, text: str, answer: Answer) -> dict[str, Any]:
        if self.kind == "chat":
            choice: dict[str, Any] = {"message": {"role": "assistant", "content": text, "refusal": None}}
        else:
            choice = {"text": text}
        choices = [{"index": 0, **choice, "logprobs": None, "finish_reason": answer.finish}]
        name = "chat.completion" if self.kind == "chat" else "text_completion"
        return {**self.head, "object": name, "choices": choices, "usage": usage(answer)}

    def piece(self, text: str, answer: Answer, first: bool = False, last: bool = False) -> dict[str, Any]:
        """One chunk of a stream; `last` has the reason of the end and no text."""
        if self.kind == "chat":
            delta: dict[str, Any] = {"role": "assistant"} if first else {}
            choice: dict[str, Any] = {"delta": delta if last else delta | {"content": text}}
        else:
            choice = {"text": text}
        reason = answer.finish if last else None
        choices = [{"index": 0, **choice, "logprobs": None, "finish_reason": reason}]
        return {**self._stream_head(), "choices": choices}

    def usage_piece(self, answer: Answer) -> dict[str, Any]:
        return {**self._stream_head(), "choices": [], "usage": usage(answer)}

    def _stream_head(self) -> dict[str, Any]:
        name = "chat.completion.chunk" if self.kind == "chat" else "text_completion"
        return {**self.head, "object": name}


def usage(answer: Answer) -> dict[str, int]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def event(data: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


DONE = "data: [DONE]\n\n"
