"""The manual below /docs/: every page is listed, found, linked and shown without a log-in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from webapp.http.headers import CONTENT_SECURITY_POLICY
from webapp.manual.contents import INDEX, ROOT, contents, pages
from webapp.manual.rendering import render
from webapp.manual.searching import search

HREF = re.compile(r'(?:href|src)="/docs/([^"#]*)(?:#([^"]*))?"')


@pytest.fixture
def built(settings: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The page as the front end builds it: Vite changes only the addresses of its files."""
    source = ROOT / "webapp/frontend/docs.html"
    (tmp_path / "docs.html").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    settings.FRONTEND_DIST = tmp_path  # type: ignore[attr-defined]


def test_every_page_of_docs_is_in_the_contents_once() -> None:
    listed = [page.path for group in contents().values() for page in group]
    assert len(listed) == len(set(listed))
    assert {path for path in INDEX.parent.rglob("*.md") if path != INDEX} <= set(listed)
    assert [path for path in listed if not path.is_file()] == []


@pytest.mark.parametrize("address", pages())
def test_a_page_is_shown_to_everybody_under_the_policy_of_the_app(address: str, built: None) -> None:
    answer = Client().get(f"/docs/{address}")
    html = answer.content.decode()
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert html.count('aria-current="page"') == (1 if address else 0)
    assert "{{" not in html and "{%" not in html and "<!-- table" not in html and "<!-- bench" not in html


@pytest.mark.parametrize("address", pages())
def test_every_link_of_a_page_leads_to_a_page_a_section_or_a_file(address: str) -> None:
    known = pages()
    for target, anchor in HREF.findall(render(known[address].path).html):
        if target in known:
            anchors = {section.anchor for section in render(known[target].path).sections}
            assert not anchor or anchor in anchors, f"{address} leads to {target}#{anchor}"
        else:
            assert (INDEX.parent / target).is_file(), f"{address} leads to {target}"


def test_a_page_has_no_other_addresses_and_no_file_outside_docs(built: None) -> None:
    client = Client()
    assert client.get("/docs/guides/drawing.md").status_code == 200
    for wrong in ("guides", "../webapp/settings.py", "%2e%2e/pyproject.toml", "guides/drawing.py", "nowhere"):
        assert client.get(f"/docs/{wrong}").status_code == 404, wrong


def test_html_in_a_text_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n<script>alert(1)</script>\n\na <b onclick=x>b</b> <!-- c -->\n", encoding="utf-8")
    html = render(page).html
    assert "<script" not in html and "<b " not in html and "&lt;script&gt;" in html and "c --" not in html


def test_a_heading_has_the_anchor_that_github_gives_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n## Compute: do `x_y` take 5 %?\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    anchors = [section.anchor for section in render(page).sections]
    assert anchors == ["a", "compute-do-x_y-take-5-", "twice", "twice-1"]


def test_a_search_finds_sections_with_all_words_and_headings_first() -> None:
    found = search("delay jitter loss")
    assert found[0].address == "/docs/reference/emulation#delay-jitter-loss"
    assert search("delay xyzzyplugh") == [] == search("  ")
    assert all(one.excerpt[1].lower() in ("delay", "jitter", "loss", "") for one in found)


def test_what_was_searched_for_is_shown_as_text(built: None) -> None:
    answer = Client().get("/docs/", {"q": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in answer and "&lt;script&gt;alert(1)" in answer
