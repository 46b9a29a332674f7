"""Takes a picture of every page, in light and dark and at two sizes, for `docs/pages/`.

The server is a new one, and what the pages show is made on it first: four runs, one of them while it goes on,
and an experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from edgeloom import Client
from engine.experiments.design.shipped_files import FOLDER
from tests.browser.conftest import ARGUMENTS, CHROMIUM, PATIENCE_MS
from tests.browser.new_site import Site, new_site
from tests.browser.pages import PAGES, SIZES, open_page
from tests.devtools.rooms import ROOT

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
QUALITY = 82
"""Of WebP, in percent: text stays sharp, and a picture has about 40 kB."""

PROMPT = {"prompt": "The with statement is used to", "new_tokens": 48}
ON_ALL = {"planner": "paper"}  # the picture shows every device at work
SLOWER = [{"kind": "set_delay", "link": "window--hub", "delay_s": 0.02, "at_s": 0.3}]


def take_pictures(directory: Path) -> list[Path]:
    """Write all pictures; needs root and Chromium, and takes some minutes. Returns the files."""
    with new_site() as site, _page(site) as page:
        made = _made(page, Client(site.url, site.token))
        places = made | {name: place for name, place in PAGES.items() if name not in made}
        directory.mkdir(parents=True, exist_ok=True)
        files = [file for name, place in places.items() for file in _of_page(page, directory, name, *place)]
    index = directory / "README.md"
    index.write_text(_index(sorted(places)), encoding="utf-8")
    return [*files, index]


def _index(names: Sequence[str]) -> str:
    """The pictures of the larger size side by side; the smaller ones have the same names."""
    (width, height), (small_width, small_height) = SIZES
    rows = (
        f"| {name} | ![{name}, light]({name}-light-{width}x{height}.webp) "
        f"| ![{name}, dark]({name}-dark-{width}x{height}.webp) |"
        for name in names
    )
    head = (
        "# Every page\n\n"
        "`./loom docs --pages` has taken these pictures on a new server, in Chromium. The folder has each "
        f"also at {small_width} × {small_height}.\n\n| page | light | dark |\n| --- | --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"


@contextmanager
def _page(site: Site) -> Iterator[Page]:
    """A page of the administrator."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_context(base_url=site.url).new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto("/")
        page.get_by_test_id("login-username").fill("admin")
        page.get_by_test_id("login-password").fill(site.password)
        page.get_by_test_id("login-submit").click()
        page.get_by_test_id("start-demo").wait_for()
        yield page
        browser.close()


def _made(page: Page, client: Client) -> dict[str, tuple[str, str]]:
    """Runs and an experiment; the pages that show them, first that of the run that goes on."""
    cluster = next(row["id"] for row in client.clusters() if row["name"] == "lab-3")
    about: dict[str, Any] = {"cluster_id": cluster, "model": "demo-lm", "workload": PROMPT}
    started = [client.start(strategy=name, **about) for name in ("single", "gpipe")]
    changed = client.start(strategy="megatron", params=ON_ALL, scenario={"changes": SLOWER}, **about)
    for run in (*started, changed):
        run.wait()
    experiment = client.new_experiment((FOLDER / "methods-by-rate.toml").read_text(encoding="utf-8"))
    experiment.predict()
    experiment.wait()
    live = client.start(strategy="megatron", params=ON_ALL, dilation=40, **about)
    page.goto(f"/runs/{live.id}")
    page.get_by_test_id("token-count").get_by_text(re.compile(r"^(8|9|\d\d) of")).wait_for()
    ids = ",".join(str(run.id) for run in started)
    return {
        "live": (f"/runs/{live.id}", "token-count"),
        "report": (f"/runs/{changed.id}", "finding"),
        "compare": (f"/compare?ids={ids}", "metrics"),
        "experiment": (f"/experiments/{experiment.id}", "pivot"),
        "experiment-design": (f"/experiments/new?from={experiment.id}", "figure"),
        "cluster": (f"/clusters/{cluster}", "palette-switch"),
    }


def _of_page(page: Page, directory: Path, name: str, path: str, shown: str) -> Iterator[Path]:
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            open_page(page, path, shown)
            page.wait_for_load_state("networkidle")
            expect(page.locator(".mantine-Loader-root")).to_have_count(0, timeout=PATIENCE_MS)
            file = directory / f"{name}-{scheme}-{width}x{height}.webp"
            Image.open(BytesIO(page.screenshot())).save(file, quality=QUALITY, method=6)
            yield file


if __name__ == "__main__":
    take_pictures(ROOT / "docs" / "pages")
