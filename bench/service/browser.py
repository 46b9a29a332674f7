"""`python -m bench.service.browser`, which `./loom bench browser` runs in namespaces of its own.

A real Chromium meets the real web server with the embedded defaults. The run whose page is watched is played
by a thread (`played_run.py`), so it sends exactly as many events as are asked for and obeys changes at once.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.service.load import environment, progress, start
from bench.tables.rows import Table
from bench.trials.isolated import found_by, hand_over, parser_of
from bench.trials.servers import Redis, wait_for
from webapp.ops.places import ROOT, OpsError
from webapp.ops.redis_server import free_port
from webapp.ops.services import web
from webapp.ops.setup import set_up_frontend

FOR_S = 60.0
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")
PASSWORD = "a password of the benchmark"


def measure_browser() -> Table:
    """Measure the pages in a browser, as root; builds the front end first if its sources have changed."""
    set_up_frontend()
    title = (
        "Chromium (headless, no graphics card) beside server and database on one machine; the live run is "
        "equal-6 with demo-lm and megatron"
    )
    return Table(title, ("what", "measured", "asked"), found_by(__name__).rows)


def measure(directory: Path, only: set[str], for_s: float) -> list[tuple[str, str, str]]:
    """Measure and return rows: what was measured, the value, and what is asked."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise OpsError("The benchmark browser needs playwright: ./loom test installs it.") from error
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    redis = Redis(directory)
    redis.start()
    port = free_port()
    os.environ.update(environment(directory, redis.server.url))
    importlib.import_module("bench.trials.django_ready")
    prepare = (sys.executable, "-m", "webapp.ops.prepare")
    subprocess.run(prepare, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = (
        "1"  # playwright's loop runs in this thread, and waits meanwhile
    )
    from bench.service.browser_stages import STAGES, Site

    server = start(web(port=port), redis, directory)
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
            site = Site(chromium, f"http://127.0.0.1:{port}", PASSWORD)
            wait_for(site.answers, "the web server")
            rows: list[tuple[str, str, str]] = []
            for name, stage in STAGES.items():
                if not only or name in only:
                    progress(name)
                    rows += (found := stage(site, for_s))
                    for row in found:
                        progress("  ".join(row))
            chromium.close()
        return rows
    finally:
        server.terminate()
        server.wait()
        redis.kill()


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="stages: start, events, reload, editor")
    parser.add_argument("--seconds", type=float, default=FOR_S, help="how long events come (default: 60)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeloom-browser-") as directory:
        rows = measure(Path(directory), set(args.only), args.seconds)
    return hand_over(rows, [], args.result)


if __name__ == "__main__":
    sys.exit(main())
