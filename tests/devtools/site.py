"""The manual as a site of files with a search: `./loom docs --site`. It needs no server and no network.

Sphinx builds it, in an environment of its own (requirements/site.txt) which is made when one is asked for. It
reads CommonMark as GitHub and the server do, and its search is a script that also works from files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.devtools.rooms import ROOT
from webapp.manual.contents import INDEX, contents, pages
from webapp.manual.rendering import FILES
from webapp.ops.places import SETUP_DIR, SITE_VENV, shown
from webapp.ops.setup import set_up_site

SETTINGS = {
    "project": "EdgeLoom",
    "root_doc": "docs/README",
    "extensions": "myst_parser",
    "myst_heading_anchors": "4",
    "suppress_warnings": "myst.xref_missing",  # source files, which are no pages: their names stay text
    "html_theme": "furo",
    "html_title": "EdgeLoom",
    "html_copy_source": "0",
    "html_show_copyright": "0",
    "html_show_search_summary": "0",  # it would be fetched, which browsers refuse to pages that are files
    "pygments_style": "tango",
}


SITE = SETUP_DIR / "docs"


def build_site() -> int:
    """Write the site anew; returns the exit status of Sphinx."""
    set_up_site()
    with TemporaryDirectory() as scratch:
        sources, built = Path(scratch) / "sources", Path(scratch) / "built"
        stage(sources)
        settings = [f"-D{name}={value}" for name, value in SETTINGS.items()]
        sphinx = (str(SITE_VENV / "bin" / "python"), "-m", "sphinx", "-C", "-W", "--keep-going", "-q")
        status = subprocess.run((*sphinx, *settings, str(sources), str(built))).returncode
        if status == 0:
            first = (
                f'<!doctype html><meta http-equiv="refresh" content="0; url={SETTINGS["root_doc"]}.html">\n'
            )
            (built / "index.html").write_text(first, encoding="utf-8")
            shutil.rmtree(built / ".doctrees")
            shutil.rmtree(SITE, ignore_errors=True)
            shutil.copytree(built, SITE)
            sys.stderr.write(f"{shown(SITE / 'index.html')} written.\n")
    return status


def stage(directory: Path) -> None:
    """Pages and pictures where links expect them, and the list of pages as Sphinx reads it."""
    pictures = [path for path in INDEX.parent.rglob("*") if path.suffix in FILES]
    for path in (*(page.path for page in pages().values()), *pictures):
        copy = directory / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    with (directory / INDEX.relative_to(ROOT)).open("a", encoding="utf-8") as index:
        for group, members in contents().items():
            names = "\n".join(
                f"{page.title} </{page.path.relative_to(ROOT).with_suffix('')}>" for page in members
            )
            index.write(f"\n```{{toctree}}\n:hidden:\n:caption: {group}\n\n{names}\n```\n")
