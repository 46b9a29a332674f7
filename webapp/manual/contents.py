"""The pages of the manual, in the order in which docs/README.md lists them: the only list of them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "README.md"
GROUP = re.compile(r"^## (.+)$")
ENTRY = re.compile(r"^- \[(.+?)\]\(([^)#]+\.md)\)")


class Page(NamedTuple):
    """A page of the manual. `title` is its name in the list, `path` its Markdown file."""

    title: str
    path: Path

    @property
    def address(self) -> str:
        return address(self.path)


def address(path: Path) -> str:
    """The part of the page's address after /docs/: its path below docs/ or, outside, below the checkout."""
    if path == INDEX:
        return ""
    folder = INDEX.parent if path.is_relative_to(INDEX.parent) else ROOT
    return path.relative_to(folder).with_suffix("").as_posix()


def contents(index: Path = INDEX) -> dict[str, list[Page]]:
    """Group of pages → its pages."""
    groups: dict[str, list[Page]] = {}
    group = ""
    for line in index.read_text(encoding="utf-8").splitlines():
        if found := GROUP.match(line):
            group = found[1]
        elif found := ENTRY.match(line):
            page = Page(found[1].replace("`", ""), (index.parent / found[2]).resolve())
            groups.setdefault(group, []).append(page)
    return groups


def pages() -> dict[str, Page]:
    """Address → page, the list itself first."""
    return _pages(INDEX.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _pages(_changed: int) -> dict[str, Page]:
    """Read once for each state of the list: every link of every page asks for it."""
    found = [Page("Contents", INDEX), *(page for group in contents().values() for page in group)]
    return {page.address: page for page in found}
