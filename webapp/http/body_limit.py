"""How many bytes a request may send: checked while they arrive, before anything is kept on the disk.

Django reads a whole body into a temporary file before it knows who sent it. Without this, anybody who reaches
the port could fill the disk.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import Error

from webapp.accounts.roles import role
from webapp.accounts.sockets import App, Scope, headers_of, who
from webapp.http.pages import error

MOST_BYTES = 12_000_000
"""Most bytes of any request but an upload of a model: a picture has 10 MB at most, with its form
around it.
"""
BODY_S, SLOWEST_BYTE_PER_S = 30.0, 10_000
"""A body has so long to arrive, and longer the more of it has come."""
FORM_BYTES = 1_000_000
"""What the form of an upload takes besides the files."""
MODELS = "/api/models"


class BodyLimit:
    """ASGI middleware: answers 413 to a body that is longer than its sender may send."""

    def __init__(self, inner: App):
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        limit = MOST_BYTES
        if scope["method"] == "POST" and scope["path"] == MODELS and await may_upload(scope):
            limit = settings.MODEL_BYTES + FORM_BYTES
        length = headers_of(scope).get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > limit:
            await refuse(scope, send, limit)
            return
        received, complete = 0, False
        began_s = time.monotonic()

        async def counted() -> Any:
            nonlocal received, complete
            patience_s = began_s + BODY_S + received / SLOWEST_BYTE_PER_S - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), None if complete else patience_s)
            except TimeoutError:
                await answer(scope, send, 408, "The request's body did not arrive in time: send it again.")
                return {"type": "http.disconnect"}
            complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received <= limit:
                return message
            await refuse(scope, send, limit)
            return {"type": "http.disconnect"}  # Django gives the request up, and its temporary file

        await self.inner(scope, counted, send)


async def may_upload(scope: Scope) -> bool:
    """Whether the request is of somebody who may add models; the API's guards check it again."""
    try:
        user = await database_sync_to_async(who)(scope)
        return user is not None and await database_sync_to_async(role)(user) != "viewer"
    except Error:
        return False  # nobody is known while the database does not answer


async def refuse(scope: Scope, send: Any, limit: int) -> None:
    sentence = f"The request's body is longer than {limit:,} bytes, the limit here: send less."
    await answer(scope, send, 413, sentence)


async def answer(scope: Scope, send: Any, status: int, detail: str) -> None:
    """Answer with an error in the form of this path's API, and end the connection."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": error(scope["path"], status, detail).content})
