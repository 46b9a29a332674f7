"""The Chromium that pages are opened in: where it is, how it starts, how long a page may take."""

from playwright.sync_api import expect

CHROMIUM = "/usr/bin/chromium-headless-shell"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    # Pages share a process: a new one would compile their code again, for a second each time.
    "--process-per-site",
]
PATIENCE_MS = 240_000
"""Only a page that fails takes it: others may have the cores, or the turn to emulate, meanwhile."""

expect.set_options(timeout=PATIENCE_MS)
