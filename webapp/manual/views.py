"""Answers below /docs/: the files of the manual.

Nobody needs to be logged in: the texts are those of the public source, and say how to log in.
"""

from __future__ import annotations

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.views.decorators.http import conditional_page, require_safe

from webapp.http.pages import not_built
from webapp.manual.contents import pages
from webapp.manual.site import SEARCH, SECTIONS, file_at, html, sections

FRESH = {"Cache-Control": "no-cache"}
ENDINGS = (".html", ".md")
"""What an address of a page may end in, besides nothing."""


@require_safe
@conditional_page
def page(request: HttpRequest, address: str = "") -> HttpResponse | FileResponse:
    """A file of the manual by its address. Links are relative to that of a file, which ends in no slash."""
    if address.endswith("/") and address[:-1] in pages():
        return _moved(address[:-1], request)
    for ending in ENDINGS:
        named = address.removesuffix(ending)
        named = "" if named == "index" else named
        if named in pages() or address == SEARCH:
            if address != SEARCH and request.GET.get("q"):  # where the search once was
                return _moved(SEARCH, request)
            template = settings.FRONTEND_DIST / "docs.html"
            if not template.is_file():
                return not_built()
            text = html(SEARCH if address == SEARCH else named, template.read_text(encoding="utf-8"))
            return HttpResponse(text, headers=FRESH)
    if address == SECTIONS:
        return HttpResponse(sections(), content_type="text/javascript; charset=utf-8", headers=FRESH)
    if path := file_at(address):
        return FileResponse(path.open("rb"), headers=FRESH)
    raise Http404


def _moved(address: str, request: HttpRequest) -> HttpResponse:
    """Lead to this address, with the words of a search."""
    query = request.META.get("QUERY_STRING", "")
    return HttpResponsePermanentRedirect(f"/docs/{address}" + (f"?{query}" if query else ""))
