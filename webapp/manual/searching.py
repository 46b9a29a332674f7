"""Sections of the manual that have all words of a question, the best first."""

from __future__ import annotations

import re
from typing import NamedTuple

from webapp.manual.contents import Page, pages
from webapp.manual.rendering import PREFIX, Section, render

MOST_WORDS = 8
MOST_FOUND = 30
AROUND = 90
"""Characters of an excerpt on each side of the word."""


class Found(NamedTuple):
    """A page that a search found. `excerpt` is the text around the first word: before it, the word as it
    stands there, after it.
    """

    page: str
    title: str
    address: str
    excerpt: tuple[str, str, str]


def search(question: str) -> list[Found]:
    words = question.lower().split()[:MOST_WORDS]
    if not words:
        return []
    scored = [
        (score, page, section)
        for page in pages().values()
        for section in render(page.path).sections
        if (score := _score(words, page, section))
    ]
    scored.sort(key=lambda one: -one[0])
    return [
        Found(page.title, section.title, f"{PREFIX}{page.address}#{section.anchor}", _excerpt(words, section))
        for _, page, section in scored[:MOST_FOUND]
    ]


def _score(words: list[str], page: Page, section: Section) -> float:
    """How well a section fits: 0 unless every word is there; words in headings count most, and words in short
    sections more.
    """
    heading, text = f"{page.title} {section.title}".lower(), section.text.lower()
    if not all(word in heading or word in text for word in words):
        return 0
    often = sum(text.count(word) for word in words)
    named = sum(word in section.title.lower() for word in words) * 4 + sum(word in heading for word in words)
    return 1 + 10 * named + often / (1 + len(text) / 2000)


def _excerpt(words: list[str], section: Section) -> tuple[str, str, str]:
    text = re.sub(r"\s+", " ", section.text)
    found = re.search("|".join(map(re.escape, words)), text, re.IGNORECASE)
    start, stop = found.span() if found else (0, 0)
    first = text.rfind(" ", 0, max(start - AROUND, 0)) + 1
    last = text.find(" ", stop + AROUND)
    last = len(text) if last < 0 else last
    before = ("… " if first else "") + text[first:start]
    return before, text[start:stop], text[stop:last] + (" …" if last < len(text) else "")
