"""The front end's page: the same index.html for every path that is not an API call, a WebSocket or a file."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe
from ninja.errors import HttpError

from webapp.base.front_end import why_no_pages
from webapp.serving.openai_form import error_response


@require_safe
@ensure_csrf_cookie
def index(request: HttpRequest) -> HttpResponse:
    """The built index.html, never cached: it names the current files."""
    path = settings.FRONTEND_DIST / "index.html"
    if not path.is_file():
        return not_built()
    return HttpResponse(path.read_bytes(), headers={"Cache-Control": "no-cache"})


def not_built() -> HttpResponse:
    """Answer 503 in place of a page of the front end."""
    return HttpResponse(
        f"{why_no_pages(settings.FRONTEND_DIST)}\n",
        status=503,
        content_type="text/plain; charset=utf-8",
    )


def unknown_api(request: HttpRequest) -> HttpResponse:
    """Answer 404, in the form of the API's errors, for a path below /api/ without a route."""
    return error(request.path, 404, f"{request.path} does not exist: /api/docs has what does.")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that Django itself refuses: an unknown host name, a body over the limit."""
    sentence = "The request is malformed, too large, or for another host name."
    return refused(request, 400, sentence, lambda: defaults.bad_request(request, exception))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return refused(request, 403, "Forbidden.", lambda: defaults.permission_denied(request, exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    sentence = f"{request.path} does not exist."
    return refused(request, 404, sentence, lambda: defaults.page_not_found(request, exception))


def broken(request: HttpRequest) -> HttpResponse:
    """An exception outside the API's views, in a middleware for example; Django has logged it."""
    sentence = (
        f"{request.method} {request.path} broke: a defect of EdgeLoom, which the server's log describes."
    )
    return refused(request, 500, sentence, lambda: defaults.server_error(request))


def refused(request: HttpRequest, status: int, detail: str, page: Callable[[], HttpResponse]) -> HttpResponse:
    """An error in the form of the API that the path belongs to, or as Django's page."""
    return error(request.path, status, detail) if request.path.startswith(("/v1/", "/api/")) else page()


def error(path: str, status: int, detail: str) -> HttpResponse:
    """An error in OpenAI's form below /v1/, elsewhere in that of the API."""
    if path.startswith("/v1/"):
        return error_response(HttpError(status, detail))
    return JsonResponse({"detail": detail, "fields": []}, status=status)
