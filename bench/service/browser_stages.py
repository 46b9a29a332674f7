"""The stages of `bench/service/browser.py`: each opens pages in a browser and gives rows of its table."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

from django.contrib.auth.models import Group, User

import topologies
from bench.service import browser_probe as probe
from bench.service.played_run import PlayedRun
from engine.domain.cluster import ClusterSpec
from topologies.layout import arrange
from webapp.ops.places import OpsError
from webapp.runs.requests import RunRequest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

EVENTS_PER_S, STORED, SLOW_EVENTS_PER_S = 5_000, 100_000, 500
SIZE: ViewportSize = {"width": 1440, "height": 900}
TIMES = 5
PATIENCE_MS = 60_000
DEVICES, LINKS, EDITED_S = 64, 200, 4.0

Row = tuple[str, str, str]
"""What, measured, asked."""


class Site:
    """The server, and somebody who may do everything there but administrate."""

    def __init__(self, chromium: Browser, url: str, password: str):
        self.chromium, self.url, self.password = chromium, url, password
        self.user = User.objects.create_user("bench", password=password)
        self.user.groups.add(Group.objects.get_or_create(name="operator")[0])
        self.cookies: Any = None

    def answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/login"):
                return True
        except URLError:
            return False

    def context(self, script: str = "") -> BrowserContext:
        """A browser without a cache, logged in after the first."""
        context = self.chromium.new_context(viewport=SIZE, base_url=self.url, storage_state=self.cookies)
        context.set_default_timeout(PATIENCE_MS)
        if self.cookies is None:
            page = context.new_page()
            page.goto("/")
            page.get_by_test_id("login-username").fill("bench")
            page.get_by_test_id("login-password").fill(self.password)
            page.get_by_test_id("login-submit").click()
            page.get_by_test_id("start-demo").wait_for()
            self.cookies = context.storage_state()
            page.close()
        if script:
            context.add_init_script(script)
        return context


def start_page(site: Site, for_s: float) -> list[Row]:
    """The first page with nothing in the browser's cache."""
    site.context().close()
    times_ms = []
    sizes: list[int] = []
    code: list[int] = []
    for _ in range(TIMES):
        context = site.context(probe.USABLE)
        page = context.new_page()
        got = probe.wire_bytes(context.new_cdp_session(page))
        page.goto("/")
        page.get_by_test_id("start-demo").wait_for()
        page.wait_for_load_state("networkidle")
        times_ms.append(float(page.evaluate("loomUsable")))
        sizes.append(sum(got.values()))
        code.append(sum(size for url, size in got.items() if url.endswith((".js", ".css"))))
        context.close()
    return [
        ("start page, over the wire: scripts and styles", kilobytes(code), "150 kB"),
        ("with fonts and data", kilobytes(sizes), ""),
        ("start page, until it can be used", f"{statistics.median(times_ms) / 1000:.2f} s", "0.6 s"),
    ]


def kilobytes(sizes: Sequence[int]) -> str:
    return f"{statistics.median(sizes) / 1000:.0f} kB"


def live_run(site: Site, events_per_s: float) -> PlayedRun:
    request = RunRequest.parse(
        {
            "cluster": topologies.load("equal-6").model_dump(mode="json"),
            "model": "demo-lm",
            "strategy": "megatron",
            "workload": {"prompt_tokens": 16, "new_tokens": 48},
        },
        "bench",
    )
    return PlayedRun(site.user, request, events_per_s)


def open_live(site: Site, run: int) -> tuple[BrowserContext, Page]:
    context = site.context(probe.PAINTED)
    page = context.new_page()
    page.goto(f"/runs/{run}")
    until_live(page)
    return context, page


def until_live(page: Page) -> None:
    page.locator("[data-testid=feed-health][data-state=live]").wait_for()


def events(site: Site, for_s: float) -> list[Row]:
    """Measure the live page while events come, as many a second as are asked, for a minute."""
    with live_run(site, EVENTS_PER_S) as played:
        context, page = open_live(site, played.run.pk)
        played.go_on()
        time.sleep(2.0)
        watched = probe.watch(page, probe.Meter(context, page), played.began_s, for_s)
        played.finish()
        page.locator("[data-testid=feed-health][data-kind=done]").wait_for()
        time.sleep(1.0)
        lost = played.published - probe.events_of(page)
        context.close()
    middle, end = watched.heap_bytes
    what = f"{played.published:,} events, {EVENTS_PER_S:,} a second for {for_s:.0f} s"
    return [
        (f"{what}: lost", str(lost), "0"),
        (
            "from an event to its picture, 95 %",
            f"{1000 * probe.quantile(watched.painted_s, 95):.0f} ms",
            "120 ms",
        ),
        ("median", f"{1000 * statistics.median(watched.painted_s):.0f} ms", ""),
        ("main thread busy", f"{watched.busy_frac:.0%}", "60 %"),
        (
            "heap after half of the time, and at the end",
            f"{middle / 1e6:.0f} and {end / 1e6:.0f} MB",
            "stable",
        ),
    ]


def reload_and_change(site: Site, for_s: float) -> list[Row]:
    """A reload in the middle of many events, and changes of a link."""
    with live_run(site, SLOW_EVENTS_PER_S) as played:
        played.publish_at_once(STORED)
        played.go_on()
        context, page = open_live(site, played.run.pk)
        times_s = []
        for _ in range(TIMES):
            began_s = time.monotonic()
            page.reload(wait_until="commit")
            until_live(page)
            times_s.append(time.monotonic() - began_s)
        changes_ms = [changed_ms(page) for _ in range(2 * TIMES)]
        context.close()
    return [
        (
            f"reload of a live page with {STORED:,} events, until it is live again",
            f"{statistics.median(times_s):.2f} s",
            "1.5 s",
        ),
        ("change of a link, until the page shows it", f"{statistics.median(changes_ms):.0f} ms", "250 ms"),
        ("slowest of ten", f"{max(changes_ms):.0f} ms", ""),
    ]


CHANGE = """
() => new Promise((resolve, reject) => {
  const control = document.querySelector('[data-testid^=link-up-]');
  const wanted = !control.checked;
  const began = performance.now();
  control.click();
  const look = () => {
    if (control.checked === wanted && !control.disabled) resolve(performance.now() - began);
    else if (performance.now() - began > 10000) reject(new Error('the change of the link was not confirmed'));
    else requestAnimationFrame(look);
  };
  look();
})
"""


def changed_ms(page: Page) -> float:
    """Milliseconds from the click on a link's switch until the run has confirmed it and the switch may be
    used again.
    """
    return float(page.evaluate(CHANGE))


def editor(site: Site, for_s: float) -> list[Row]:
    """A large cluster: the canvas is panned, and a device is dragged."""
    drawn = large_cluster()
    context = site.context()
    page = context.new_page()
    csrf = next(one["value"] for one in context.cookies() if one["name"] == "csrftoken")
    body = {"spec": drawn.model_dump(mode="json"), "layout": arrange(drawn).model_dump(mode="json")}
    made = page.request.post("/api/clusters", data=body, headers={"X-CSRFToken": csrf})
    if not made.ok:
        raise OpsError(f"The large cluster was refused: {made.text()}")
    number = made.json()["id"]
    page.goto(f"/clusters/{number}")
    page.locator(".react-flow__node").first.wait_for()
    page.wait_for_load_state("networkidle")
    rows = []
    for what, begin in (("panned", (40, 40)), ("a device dragged", None)):
        times_s = dragged(page, begin)
        fps = len(times_s) / sum(times_s)
        slow = 1000 * probe.quantile(times_s, 95)
        said = f"{fps:.0f} frames a second (95 %: {slow:.0f} ms)"
        rows.append((f"editor with {DEVICES} devices and {LINKS} links, {what}", said, "50"))
    context.close()
    return rows


def dragged(page: Page, begin: tuple[int, int] | None) -> list[float]:
    """Seconds of the frames while the pointer drags from a place of the canvas, or the first device."""
    box = page.locator(".react-flow__pane").bounding_box() or {"x": 0, "y": 0, "width": 800, "height": 600}
    x, y = box["x"] + 40, box["y"] + box["height"] / 2
    if begin is None:
        nodes = (one.bounding_box() for one in page.locator(".react-flow__node").all())
        shown = [node for node in nodes if node and inside(node, box)]
        node = shown[len(shown) // 2]  # those at the edges lie below the panels
        x, y = node["x"] + node["width"] / 2, node["y"] + node["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate("() => { window.loomFrames = (%s)() }" % (probe.FRAMES % round(1000 * EDITED_S)))
    until_s, step = time.monotonic() + EDITED_S, 0
    while time.monotonic() < until_s:
        step += 1
        page.mouse.move(x + 60 * (step % 40) / 40, y + 40 * (step % 23) / 23)
        time.sleep(0.008)
    times_ms: list[float] = page.evaluate("() => window.loomFrames")
    page.mouse.up()
    return probe.times_between_s(times_ms)


def inside(node: Any, box: Any) -> bool:
    """Whether a node is on the visible canvas, 80 pixels from its edges."""
    return all(
        box[start] + 80 < node[start] and node[start] + node[size] < box[start] + box[size] - 80
        for start, size in (("x", "width"), ("y", "height"))
    )


def large_cluster() -> ClusterSpec:
    """A chain through all devices, and links between random pairs."""
    random_ = random.Random(1)
    base = topologies.load("lab-3")
    names = [f"n{number}" for number in range(DEVICES)]
    devices = [base.devices[0].model_copy(update={"name": name}) for name in names]
    pairs = {(number, number + 1) for number in range(DEVICES - 1)}
    while len(pairs) < LINKS:
        one, other = sorted(random_.sample(range(DEVICES), 2))
        pairs.add((one, other))
    links = [base.links[0].model_copy(update={"a": names[a], "b": names[b]}) for a, b in sorted(pairs)]
    return ClusterSpec(name="bench-large", source=names[0], devices=tuple(devices), links=tuple(links))


STAGES: dict[str, Callable[[Site, float], list[Row]]] = {
    "start": start_page,
    "events": events,
    "reload": reload_and_change,
    "editor": editor,
}
