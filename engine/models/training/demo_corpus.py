"""The demo model's corpus: the prose in Python's own documentation and in that of EdgeLoom's dependencies.

The pages of Python's reference (`pydoc_data.topics`) and the docstrings of the standard library and of
`PACKAGES`, read with `ast` and never imported. Only prose is kept (no code, grammar or tables), and each
paragraph once, so what is held out, chosen by the hash of its text, is seen nowhere in training.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

HELD_OUT_ONE_IN = 20
SHORTEST_PARAGRAPH = 60
LEAST_LETTERS_FRAC = 0.88
NOT_DOCUMENTATION = {
    "test",
    "tests",
    "testing",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "ensurepip",
    "site-packages",
    "_vendor",
}
PACKAGES = ("torch", "numpy", "django", "scipy", "sklearn", "sympy", "networkx")
"""Installed packages whose docstrings are read too; requirements/runtime.txt has their versions. All have the
three-clause BSD licence, or for torch, one in its style.
"""


@dataclass(frozen=True)
class Corpus:
    """Pages to train on, and held-out paragraphs that are in none of them."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]


def read_corpus(packages: Sequence[str] = PACKAGES) -> Corpus:
    """The corpus of this installation; it differs a little between versions. Takes about half a minute.

    Raises `ModuleNotFoundError` if one of `packages` is not installed.
    """
    return split(_pages(packages))


def _pages(packages: Sequence[str]) -> Iterator[str]:
    yield from topics.values()
    yield from docstrings(Path(sysconfig.get_path("stdlib")))
    for name in packages:
        found = find_spec(name)
        if found is None or not found.submodule_search_locations:
            raise ModuleNotFoundError(f"{name} is not installed: the corpus has its documentation.")
        yield from docstrings(Path(found.submodule_search_locations[0]))


def held_out(packages: Sequence[str] = PACKAGES) -> Iterator[str]:
    """The held-out paragraphs of `read_corpus` in their order, each read when it is asked for: the first ones
    take a second and not half a minute.

    Raises `ModuleNotFoundError` if it comes to one of `packages` that is not installed.
    """
    return (text for _, text, is_held_out in _paragraphs(_pages(packages)) if is_held_out)


def split(pages: Iterable[str]) -> Corpus:
    """Keep each paragraph of prose once; one in `HELD_OUT_ONE_IN` of them is held out."""
    kept: dict[int, list[str]] = {}
    kept_back: list[str] = []
    for number, paragraph, is_held_out in _paragraphs(pages):
        (kept_back if is_held_out else kept.setdefault(number, [])).append(paragraph)
    return Corpus(tuple("\n".join(page) for page in kept.values()), tuple(kept_back))


def _paragraphs(pages: Iterable[str]) -> Iterator[tuple[int, str, bool]]:
    """Each paragraph of prose once: the number of its page, its text, whether it is held out."""
    seen: set[bytes] = set()
    for number, page in enumerate(pages):
        for paragraph in prose(page):
            digest = hashlib.sha256(paragraph.encode()).digest()
            if digest not in seen:
                seen.add(digest)
                yield number, paragraph, int.from_bytes(digest[:4], "big") % HELD_OUT_ONE_IN == 0


def prose(page: str) -> Iterator[str]:
    """The paragraphs of whole sentences, each unwrapped to one line."""
    for paragraph in re.split(r"\n\s*\n", page):
        lines = paragraph.splitlines()
        indents = {len(line) - len(line.lstrip()) for line in lines[1:]}
        text = " ".join(line.strip() for line in lines)
        text = re.sub(r"\s+", " ", text).lstrip("*- ")
        if len(indents) > 1 or len(text) < SHORTEST_PARAGRAPH or ">>>" in text or "::=" in text:
            continue
        letters = sum(c == " " or (c.isascii() and c.isalpha()) for c in text)
        if letters >= LEAST_LETTERS_FRAC * len(text) and text[0].isupper() and text[-1] == ".":
            yield text


def docstrings(root: Path) -> Iterator[str]:
    """One page per module below `root`: the docstrings of the module and of all that it defines."""
    for path in sorted(root.rglob("*.py")):
        if NOT_DOCUMENTATION & set(path.relative_to(root).parts):
            continue
        nodes = ast.walk(ast.parse(path.read_bytes()))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docstrings = [ast.get_docstring(node) for node in nodes if isinstance(node, documented)]
        page = "\n\n".join(text for text in docstrings if text)
        if page:
            yield page
