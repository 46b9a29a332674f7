"""Where the built pages of the browser are. Standard library only, for `./loom up`."""

from __future__ import annotations

from pathlib import Path

from engine.domain.command_name import COMMAND, IS_CHECKOUT
from engine.domain.state_directory import ROOT

FRONTEND_DIST = ROOT / "webapp" / "frontend" / "dist"

REMEDY = (
    f"run {COMMAND} up, or npm ci && npm run build in webapp/frontend"
    if IS_CHECKOUT
    else "install a wheel that was built in a checkout with a built front end"
)


def why_no_pages(dist: Path = FRONTEND_DIST) -> str:
    """Why this server has no pages, in a sentence; "" where it has them."""
    if (dist / "index.html").is_file():
        return ""
    return f"There are no pages in {dist}, so only the API answers: {REMEDY}."
