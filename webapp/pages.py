"""The front end's page: the same index.html for every path that is not an API call, a WebSocket or a file."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe


@require_safe
@ensure_csrf_cookie
def index(request: HttpRequest) -> HttpResponse:
    """The built index.html, never cached: it names the current files."""
    path = settings.FRONTEND_DIST / "index.html"
    if not path.is_file():
        return HttpResponse(
            "The front end is not built yet: run ./loom up, or npm ci && npm run build in it.\n",
            status=503,
            content_type="text/plain; charset=utf-8",
        )
    return HttpResponse(path.read_bytes(), headers={"Cache-Control": "no-cache"})


def unknown_api(request: HttpRequest) -> HttpResponse:
    """Answer 404, in the form of the API's errors, for a path below /api/ without a route."""
    detail = f"{request.path} does not exist: /api/docs has what does."
    return JsonResponse({"detail": detail, "fields": []}, status=404)
