"""Middleware that refuses an address with a NUL character: no file, no page and no row of a database has one.

`webapp/base/bodies.py` looks at bodies.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from webapp.http.pages import refused

SENTENCE = "The address has a NUL character (%00): remove it."


def no_nul(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    def answer(request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return refused(request, 400, SENTENCE, lambda: HttpResponse(SENTENCE, "text/plain", 400))
        return get_response(request)

    return answer
