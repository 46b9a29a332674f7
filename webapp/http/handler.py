"""The handler of HTTP requests: all middleware and the view of a request in one thread, one after another.

Django's own runs each asynchronous middleware in the event loop and its database work in a thread. All
that EdgeLoom uses can do both, and WhiteNoise only the one in a thread; so a request went to and fro between
loop and thread 15 times, and waited each time while 200 WebSockets got their events.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponseBase


class OneThreadHandler(ASGIHandler):
    """Django's handler with all middleware in one thread; an asynchronous view still runs in the
    event loop.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        get_response: Any = self.get_response
        response: HttpResponseBase = await sync_to_async(get_response, thread_sensitive=True)(request)
        return response
