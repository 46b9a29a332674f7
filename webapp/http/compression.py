"""Middleware that compresses answers of the API and the manual: lists of clusters, and what the manual's
search reads, are some hundred kilobytes.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedAnswers(GZipMiddleware):
    """Compresses whole answers below /api/ and /docs/. A stream goes out as it comes, and files have their
    compressed copies already.

    Django adds up to 100 random bytes, so the length of an answer does not tell what secrets are in it
    (BREACH).
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not request.path.startswith(("/api/", "/docs/")):
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed
