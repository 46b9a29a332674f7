"""What a test asks of the API over a browser's session, beside what its page asks."""

from __future__ import annotations

from playwright.sync_api import BrowserContext

from webapp.jobs.models import ACTIVE


def proof(context: BrowserContext) -> dict[str, str]:
    """The header without which a session may change nothing."""
    token = next(each["value"] for each in context.cookies() if each["name"] == "csrftoken")
    return {"X-CSRFToken": token}


def end_runs(context: BrowserContext) -> None:
    """Cancel every run that waits or goes on."""
    for run in context.request.get("/api/runs").json():
        if run["status"] in ("queued", *ACTIVE):
            context.request.post(f"/api/runs/{run['id']}/cancel", headers=proof(context))
