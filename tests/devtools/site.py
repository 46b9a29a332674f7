"""The manual as a site of files with a search: `./loom docs --site`. It needs no server and no network."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.domain.errors import SpecError
from webapp.base.front_end import FRONTEND_DIST, why_no_pages
from webapp.manual.site import written
from webapp.ops.places import SETUP_DIR, shown

SITE = SETUP_DIR / "docs"
BUILT = re.compile(r"/static/app/([\w./-]+)")
"""A file of the front end, as its built pages and styles name it."""


def build_site(site: Path = SITE, dist: Path = FRONTEND_DIST) -> int:
    """Write the site anew; returns the exit status. Raises `SpecError` if the front end is not built."""
    template = dist / "docs.html"
    if not template.is_file():
        raise SpecError(why_no_pages(dist))
    page = template.read_text(encoding="utf-8")
    style = next(name for name in BUILT.findall(page) if name.endswith(".css"))
    files = {*BUILT.findall(page), *BUILT.findall((dist / style).read_text(encoding="utf-8"))}
    # A page that is a file may not ask for what is of another origin, and knows no application.
    page = (
        BUILT.sub(r"{{ root }}app/\1", page)
        .replace(" crossorigin", "")
        .replace('href="/"', 'href="{{ root }}index.html"')
    )
    with TemporaryDirectory() as scratch:
        built = Path(scratch)
        for address, content in written(page):
            place = built / address
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, place)
            else:
                place.write_text(content, encoding="utf-8")
        for name in files:
            place = built / "app" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(dist / name, place)
        sheet = built / "app" / style
        sheet.write_text(
            BUILT.sub(lambda file: f"../{file[1]}", sheet.read_text(encoding="utf-8")), encoding="utf-8"
        )
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(built, site)
    sys.stderr.write(f"{shown(site / 'index.html')} written.\n")
    return 0
