"""A page's Markdown as HTML: headings have GitHub's anchors, and links lead to files of the manual.

A paragraph that is a link to a CSV file is drawn as that file's table, which unfolds.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from webapp.manual.contents import INDEX, Page, address, pages

FILES = (".svg", ".png", ".webp", ".json", ".ipynb", ".csv")
"""Endings of the files below docs/ that pages show or link."""


class Section(NamedTuple):
    """What stands below one heading, as plain text."""

    title: str
    anchor: str
    level: int
    text: str


class Rendered(NamedTuple):
    title: str
    html: str
    sections: tuple[Section, ...]


def render(path: Path) -> Rendered:
    """The page of this file as it is now, with its tables: the CSV files in the folder of its name."""
    files = (path, INDEX, *sorted(path.with_suffix("").glob("*.csv")))
    return _render(path, tuple(file.stat().st_mtime_ns for file in files))


@lru_cache(maxsize=128)
def _render(path: Path, _changed: tuple[int, ...]) -> Rendered:
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.add_render_rule("data", _data)
    markdown.add_render_rule("html_block", _without_html)
    markdown.add_render_rule("html_inline", _without_html)
    tokens = markdown.parse(path.read_text(encoding="utf-8"))
    anchors: set[str] = set()
    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(_text(content), anchors))
    for number, token in enumerate(tokens):
        if (name := _lone_table(token)) and (file := path.parent / name).is_file():
            token.type, token.content = "data", file.read_text(encoding="utf-8")
            tokens[number - 1].hidden = tokens[number + 1].hidden = True  # the paragraph
        _lead_to_addresses(token.children or [], path)
    sections = tuple(_sections(tokens))
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    html = re.sub(r"<table( class=\"data\")?>", r'<div class="table" tabindex="0"><table\1>', html)
    html = html.replace("</table>", "</table></div>")
    html = html.replace("<pre>", '<pre tabindex="0">')  # one that is wider than its page is scrolled by keys
    return Rendered(sections[0].title, html, sections)


def _without_html(_renderer: object, tokens: Sequence[Token], number: int, *_rest: object) -> str:
    """HTML as a page shows it: nothing for a comment, other HTML as it is written."""
    content = tokens[number].content
    return "" if content.lstrip().startswith("<!--") else escape(content)


def _lone_table(token: Token) -> str:
    """The CSV file that all of a paragraph links to; "" for others."""
    kinds = [child.type for child in token.children or []]
    if token.type != "inline" or kinds != ["link_open", "text", "link_close"]:
        return ""
    assert token.children
    link = str(token.children[0].attrs["href"])
    return link if link.endswith(".csv") and "://" not in link else ""


def _data(_renderer: object, tokens: Sequence[Token], number: int, *_rest: object) -> str:
    """A CSV file as a table that unfolds, and its download."""
    token = tokens[number]
    link, text, _ = token.children or []
    heads, *rows = csv.reader(token.content.splitlines())
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<details><summary>{escape(text.content)}</summary>"
        f'<a href="{escape(str(link.attrs["href"]))}" download>CSV</a>'
        f'<table class="data"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></details>'
    )


def _anchor(title: str, taken: set[str]) -> str:
    """The anchor of a heading as GitHub makes it: `Links: how fast?` becomes `links-how-fast`, and a second
    one gets `-1`.
    """
    plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    numbered = (f"{plain}-{number}" if number else plain for number in range(len(taken) + 1))
    found = next(each for each in numbered if each not in taken)
    taken.add(found)
    return found


def _text(token: Token) -> str:
    """The text of an inline token, without its marks."""
    words = (" " if child.type.endswith("break") else child.content for child in token.children or [])
    return "".join(words)


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    title, anchor, level, texts = "", "", 1, list[str]()
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            if title:
                yield Section(title, anchor, level, " ".join(texts))
            title, anchor, level = _text(tokens[number + 1]), str(token.attrs["id"]), int(token.tag[1])
            texts = []
        elif token.type == "inline" and tokens[number - 1].type != "heading_open":
            texts.append(_text(token))
        elif token.type in ("fence", "data"):
            texts.append(token.content)
    yield Section(title, anchor, level, " ".join(texts))


def _lead_to_addresses(tokens: Sequence[Token], path: Path) -> None:
    """Rewrite the targets of links and pictures; a link to a file that is not in the manual becomes text."""
    leads = list[bool]()
    for token in tokens:
        if token.type == "image":
            token.attrSet("src", _target(str(token.attrs["src"]), path) or "")
            token.attrSet("loading", "lazy")
        elif token.type == "link_open":
            target = _target(str(token.attrs["href"]), path)
            leads.append(target is not None)
            token.hidden = target is None
            token.attrSet("href", target or "")
        elif token.type == "link_close":
            token.hidden = not leads.pop()


def _target(link: str, path: Path) -> str | None:
    if "://" in link or link.startswith("#"):
        return link
    name, _, anchor = link.partition("#")
    file = (path.parent / name).resolve()
    known = {page.path: page for page in pages().values()}
    if page := known.get(file):
        return to_root(address(path)) + address_of_file(page) + (f"#{anchor}" if anchor else "")
    if file.suffix in FILES and file.is_relative_to(INDEX.parent):
        return to_root(address(path)) + file.relative_to(INDEX.parent).as_posix()
    return None


def address_of_file(page: Page) -> str:
    """The file of a page in the site."""
    return f"{page.address or 'index'}.html"


def to_root(address: str) -> str:
    """What leads from the folder of an address to that of the index."""
    return "../" * address.count("/")
