"""Answers below /docs/: pages, what a search finds, and pictures.

Nobody needs to be logged in: the texts are those of the public source, and say how to log in.
"""

from __future__ import annotations

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.template import engines
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from webapp.http.pages import not_built
from webapp.manual.contents import INDEX, Page, contents, pages
from webapp.manual.rendering import FILES, PREFIX, render
from webapp.manual.searching import search

MOST_LETTERS = 200


@require_safe
def page(request: HttpRequest, address: str = "") -> HttpResponse | FileResponse:
    """A page by its address, with or without `.md`, or a picture."""
    known = pages()
    found = known.get(address.removesuffix(".md").removesuffix("/"))
    if found is None:
        return _file(address)
    return _answer(request, found, list(known.values()))


def _answer(request: HttpRequest, found: Page, order: list[Page]) -> HttpResponse:
    template = settings.FRONTEND_DIST / "docs.html"
    if not template.is_file():
        return not_built()
    rendered, number = render(found.path), order.index(found)
    question = request.GET.get("q", "")[:MOST_LETTERS].strip()
    context = {
        "prefix": PREFIX,
        "title": f"Search: {question}" if question else rendered.title,
        "groups": [
            (name, [(one, "page" if one == found and not question else "false") for one in group])
            for name, group in contents().items()
        ],
        "question": question,
        "found": search(question),
        # Made from the files of this checkout: HTML in them is shown, not obeyed.
        "body": mark_safe(rendered.html),
        "sections": [one for one in rendered.sections[1:] if one.level == 2],
        "previous": order[number - 1] if number else None,
        "next": order[number + 1] if number + 1 < len(order) else None,
    }
    html = engines["django"].from_string(template.read_text(encoding="utf-8")).render(context, request)
    return HttpResponse(html, headers={"Cache-Control": "no-cache"})


def _file(address: str) -> FileResponse:
    """A picture or data file below docs/."""
    folder = INDEX.parent
    path = (folder / address).resolve()
    if not (path.is_relative_to(folder) and path.suffix in FILES and path.is_file()):
        raise Http404
    return FileResponse(path.open("rb"), headers={"Cache-Control": "no-cache"})
