"""The manual as files: pages, what its search reads, pictures and tables.

The server sends them below /docs/, and `./loom docs --site` writes them: links between them are relative.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from django.template import Context, Engine, Template
from django.utils.safestring import mark_safe

from webapp.manual.contents import INDEX, contents, pages
from webapp.manual.rendering import FILES, Rendered, address_of_file, render, to_root

SEARCH = "search.html"
SECTIONS = "sections.js"
ANSWERS = """<h1 id="question">Search</h1>
<div id="found" aria-live="polite"><noscript>The search needs JavaScript.</noscript></div>"""
"""What the script of the front end, manual.js, fills in."""


def html(address: str, template: str) -> str:
    """The page at this address, or that of the search, in `template`: a page of the front end's build."""
    order = list(pages().values())
    page = pages().get(address)
    text = render(page.path) if page else Rendered("Search", ANSWERS, ())
    number = order.index(page) if page else -2
    around = (("previous", "← {}", number - 1), ("next", "{} →", number + 1))
    context = {
        "root": to_root(address),
        "title": text.title,
        "groups": [
            (name, [(one.title, address_of_file(one), "page" if one == page else "false") for one in group])
            for name, group in contents().items()
        ],
        # Made from the files of this checkout: HTML in them is shown, not obeyed.
        "body": mark_safe(text.html),
        "sections": [one for one in text.sections[1:] if one.level == 2],
        "neighbours": [
            (way, words.format(order[at].title), address_of_file(order[at]))
            for way, words, at in around
            if 0 <= at < len(order)
        ],
    }
    return _template(template).render(Context(context))


@lru_cache(maxsize=2)
def _template(text: str) -> Template:
    return Engine().from_string(text)


def sections() -> str:
    """The script that the search reads: page, heading, address and text of every section."""
    rows = [
        (page.title, section.title, f"{address_of_file(page)}#{section.anchor}", section.text)
        for page in pages().values()
        for section in render(page.path).sections
    ]
    return f"const SECTIONS = {json.dumps(rows, ensure_ascii=False)};\n"


def file_at(address: str) -> Path | None:
    """A picture or table below docs/, by its address."""
    folder = INDEX.parent
    path = (folder / address).resolve()
    try:
        return path if path.is_relative_to(folder) and path.suffix in FILES and path.is_file() else None
    except OSError:  # a name that no file can have, such as one of 300 letters
        return None


def written(template: str) -> Iterator[tuple[str, str | Path]]:
    """Address of every file of the site, and its text or what it is a copy of."""
    for address, page in pages().items():
        yield address_of_file(page), html(address, template)
    yield SEARCH, html(SEARCH, template)
    yield SECTIONS, sections()
    for path in sorted(INDEX.parent.rglob("*")):
        if path.suffix in FILES:
            yield path.relative_to(INDEX.parent).as_posix(), path
