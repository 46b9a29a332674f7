"""The manual below /docs/: every page is listed, found, linked and shown without a log-in."""

from __future__ import annotations

import gzip
import os
import posixpath
import re
from pathlib import Path

import pytest
from django.test import Client

from webapp.http.headers import CONTENT_SECURITY_POLICY
from webapp.manual.contents import INDEX, ROOT, contents, pages
from webapp.manual.rendering import render
from webapp.manual.site import SEARCH, SECTIONS, sections, written

HREF = re.compile(r'(?:href|src)="(?!https?:)([^"#]*)(?:#([^"]*))?"')


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


LISTED = """{% for _, pages in groups %}{% for _, file, _ in pages %}<a href="{{ root }}{{ file }}">
{% endfor %}{% endfor %}{{ body }}"""


def test_every_link_of_the_site_leads_to_a_file_of_it_and_to_a_heading_of_that_file() -> None:
    """Links that work from files work below /docs/ too, where every file has its address."""
    site = dict(written(LISTED))
    headings = re.compile(r'<h\d id="([^"]+)"')
    anchors = {file: headings.findall(text) for file, text in site.items() if isinstance(text, str)}
    for file, html in site.items():
        if file in (SEARCH, SECTIONS) or not isinstance(html, str):
            continue
        for target, anchor in HREF.findall(html):
            to = posixpath.normpath(posixpath.join(posixpath.dirname(file), target)) if target else file
            assert to in site, f"{file} leads to {target}"
            assert not anchor or anchor in anchors[to], f"{file} leads to {target}#{anchor}"


def test_every_file_of_the_site_is_what_the_server_sends_at_its_address(built: None) -> None:
    template = (ROOT / "webapp/frontend/docs.html").read_text(encoding="utf-8")
    client = Client()
    for file, content in written(template):
        if isinstance(content, str) or file.startswith("guides/"):
            answer = client.get(f"/docs/{file}")
            sent = b"".join(answer) if answer.streaming else answer.content
            assert sent == (content.encode() if isinstance(content, str) else content.read_bytes()), file


def test_a_page_has_no_other_addresses_and_no_file_outside_docs(built: None) -> None:
    client = Client()
    assert client.get("/docs/guides/drawing.md").status_code == 200
    assert (ROOT / "webapp/frontend/package.json").is_file()
    for wrong in ("guides", "..%2fwebapp/frontend/package.json", "guides/drawing.py", "nowhere"):
        assert client.get(f"/docs/{wrong}").status_code == 404, wrong
    for wrong in (
        f"{'a' * 300}.csv",
        f"{'a/' * 3000}a.csv",
        "guides/chat.png/a.png",
        "nowhere/",
        "guides/nodes//",
    ):
        assert client.get(f"/docs/{wrong}").status_code == 404, wrong[:20]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("guides/nodes/", "guides/nodes"),
        ("guides/nodes/?a=b", "guides/nodes?a=b"),
        ("/", ""),
        ("?q=slow+boards", "search.html?q=slow+boards"),
        ("guides/nodes?q=%C3%BC", "search.html?q=%C3%BC"),
    ],
)
def test_an_older_address_leads_to_the_one_that_links_are_relative_to(
    old: str, new: str, built: None
) -> None:
    answer = Client().get(f"/docs/{old}")
    assert (answer.status_code, answer.headers["Location"]) == (301, f"/docs/{new}")
    assert Client().get(f"/docs/{new}").status_code == 200


def test_what_the_search_reads_is_sent_compressed_and_once(built: None) -> None:
    takes = {"accept-encoding": "gzip, deflate, br"}
    small = Client().get("/docs/sections.js", headers=takes)
    assert gzip.decompress(small.content).decode() == sections()
    again = Client().get("/docs/sections.js", headers=takes | {"if-none-match": small.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_html_in_a_text_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n<script>alert(1)</script>\n\na <b onclick=x>b</b> <!-- c -->\n", encoding="utf-8")
    html = render(page).html
    assert "<script" not in html and "<b " not in html and "&lt;script&gt;" in html and "c --" not in html


def test_a_paragraph_that_links_a_table_is_drawn_as_it_and_found_by_what_stands_in_it(tmp_path: Path) -> None:
    page, table = tmp_path / "page.md", tmp_path / "page" / "boards.csv"
    page.write_text("# A\n\n[Both](page/boards.csv)\n\nSee [them](page/boards.csv).\n", encoding="utf-8")
    table.parent.mkdir()
    table.write_text('board,token\n"<Pi>, 5",12 ms\nOrin,3 ms\n', encoding="utf-8")
    drawn = render(page)
    assert drawn.html.count("<table") == 1 and "<summary>Both</summary>" in drawn.html
    assert "<tr><td>&lt;Pi&gt;, 5</td><td>12 ms</td></tr><tr><td>Orin</td>" in drawn.html
    assert "Orin" in drawn.sections[0].text
    table.write_text("board\nNano\n", encoding="utf-8")
    os.utime(table, ns=(1, 1))  # another time than before, whatever the clock's step
    assert "<td>Nano</td>" in render(page).html


def test_a_heading_has_the_anchor_that_github_gives_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n## Compute: do `x_y` take 5 %?\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    anchors = [section.anchor for section in render(page).sections]
    assert anchors == ["a", "compute-do-x_y-take-5-", "twice", "twice-1"]
