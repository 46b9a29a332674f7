"""What is measured inside a real browser: scripts for its pages, and what follows from their samples."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession, Page

PAINTED = """
(() => {
  const waiting = [];
  const probe = (window.loomProbe = { painted: [] });
  const after = new MessageChannel();
  let drawn = [];
  after.port1.onmessage = () => {
    const now = (performance.timeOrigin + performance.now()) / 1000;
    for (const wall_s of drawn) probe.painted.push([wall_s, now]);
    drawn = [];
  };
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    set onmessage(handle) {
      super.onmessage = (message) => {
        handle(message);
        const at = message.data.lastIndexOf('"wall_s":');
        if (at >= 0) waiting.push(parseFloat(message.data.slice(at + 9, at + 40)));
      };
    }
  };
  const fill = CanvasRenderingContext2D.prototype.fillRect;
  CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
    if (x === 0 && y === 0 && waiting.length > 0 && this.canvas.dataset.testid === 'timeline') {
      drawn.push(...waiting.splice(0));
      after.port2.postMessage(null);
    }
    return fill.call(this, x, y, width, height);
  };
})();
"""
"""Pairs of (clock of a message's newest event, time since the epoch after the timeline was painted with it).
The message channel's turn comes after the frame's own work.
"""

FRAMES = """
() => new Promise((resolve) => {
  const times = [];
  const until = performance.now() + %d;
  const frame = (now) => {
    times.push(now);
    if (now < until) requestAnimationFrame(frame);
    else resolve(times);
  };
  requestAnimationFrame(frame);
})
"""

USABLE = """
(() => {
  const look = () => {
    const button = document.querySelector('[data-testid=start-demo]:not([disabled])');
    if (button) window.loomUsable = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""


class Watched(NamedTuple):
    """One live page over some time: seconds from an event to its picture, share of the time in which the
    main thread was busy, bytes of the heap after collections in the middle and at the end, events that the
    page has.
    """

    painted_s: list[float]
    busy_frac: float
    heap_bytes: tuple[int, int]
    events: int


class Meter:
    """The browser's own counters of one page."""

    def __init__(self, context: BrowserContext, page: Page):
        self.session: CDPSession = context.new_cdp_session(page)
        self.session.send("Performance.enable")

    def task_s(self) -> tuple[float, float]:
        """Seconds that tasks of the main thread took so far, and the time of the measurement."""
        metrics = {
            one["name"]: one["value"] for one in self.session.send("Performance.getMetrics")["metrics"]
        }
        return metrics["TaskDuration"], metrics["Timestamp"]

    def heap_bytes(self) -> int:
        self.session.send("HeapProfiler.collectGarbage")
        return int(self.session.send("Runtime.getHeapUsage")["usedSize"])


def watch(page: Page, meter: Meter, began_s: float, for_s: float) -> Watched:
    """`began_s`: since the epoch, the time at which the clock of the run's events is 0."""
    page.evaluate("loomProbe.painted = []")
    busy_s, at_s = meter.task_s()
    half_s = for_s / 2
    time.sleep(half_s)
    middle_busy_s, middle_at_s = meter.task_s()
    middle_bytes = meter.heap_bytes()  # takes the main thread for a moment: not measured
    again_busy_s, again_at_s = meter.task_s()
    time.sleep(half_s)
    end_busy_s, end_at_s = meter.task_s()
    painted = page.evaluate("loomProbe.painted")
    busy = (middle_busy_s - busy_s) + (end_busy_s - again_busy_s)
    elapsed_s = (middle_at_s - at_s) + (end_at_s - again_at_s)
    lags_s = [painted_s - began_s - wall_s for wall_s, painted_s in painted]
    return Watched(lags_s, busy / elapsed_s, (middle_bytes, meter.heap_bytes()), events_of(page))


def events_of(page: Page) -> int:
    return int(page.get_by_test_id("feed-health").get_attribute("data-events") or 0)


def times_between_s(times_ms: Sequence[float]) -> list[float]:
    """Seconds between frames that were painted at these times."""
    return [(after - before) / 1000 for before, after in pairwise(times_ms)]


def quantile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else values[0]


def wire_bytes(session: CDPSession) -> dict[str, int]:
    """Address → bytes of the answer as they came over the wire; it grows while the page loads."""
    addresses: dict[str, str] = {}
    found: dict[str, int] = {}

    def begun(event: dict[str, Any]) -> None:
        addresses[event["requestId"]] = event["response"]["url"]

    def ended(event: dict[str, Any]) -> None:
        found[addresses.get(event["requestId"], event["requestId"])] = int(event["encodedDataLength"])

    session.send("Network.enable")
    session.on("Network.responseReceived", begun)
    session.on("Network.loadingFinished", ended)
    return found
