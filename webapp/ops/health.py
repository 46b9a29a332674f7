"""Says whether the web server answers, and ends a child that runs but does not: it is started again then.

`python -m webapp.ops.health URL` exits 0 if it answers.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from webapp.base.core_wait import is_starved
from webapp.ops.places import echo, shown
from webapp.ops.supervisor import Child

EVERY_S = 10.0
MISSES = 6
"""A busy machine is slow: only so many questions in a row without an answer mean that none will come."""


def answers_http(url: str) -> bool:
    """Whether the server answers with a status below 500: 401 before the log-in counts."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=5).close()
    except urllib.error.HTTPError as answer:
        return answer.code < 500
    except OSError:
        return False
    return True


class HealthWatch(threading.Thread):
    """Asks `answers` again and again until the process ends, and kills `child` when it does not answer."""

    def __init__(self, child: Child, answers: Callable[[], bool]):
        super().__init__(name=f"health of {child.name}", daemon=True)
        self.child, self.answers = child, answers
        self.asked: object = None
        self.misses = 0
        self.looked_s, self.waited_s = time.monotonic(), 0.0
        self.pause = threading.Event()

    def run(self) -> None:
        while not self.pause.wait(EVERY_S):
            self.look()

    def look(self) -> None:
        """Ask once. What a new process misses counts only from its first answer on: starting takes time; and
        what one misses that got no core, not at all: a new one would get none either.
        """
        process, answers = self.child.process, self.answers()
        starved = self._is_starved()
        if answers:
            self.asked, self.misses = process, 0
        elif self.asked is process and not starved:
            self.misses += 1
        if self.misses >= MISSES:
            self.misses, self.asked = 0, None
            log = shown(self.child.log)
            echo(f"{self.child.name} runs and does not answer: it is ended and started again. Its log: {log}")
            self.child.send(signal.SIGKILL)

    def _is_starved(self) -> bool:
        """Whether the process had next to no core since it was last asked."""
        now_s, waited_s = time.monotonic(), self.child.waited_s()
        starved = is_starved(waited_s - self.waited_s, now_s - self.looked_s)
        self.looked_s, self.waited_s = now_s, waited_s
        return starved


if __name__ == "__main__":
    sys.exit(0 if answers_http(sys.argv[1]) else 1)
