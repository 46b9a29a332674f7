"""Lets a worker take its next job while the outputs of the last one are compared, those of one job at a time:
more would take the cores and the memory of what goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import connections

HandOver = Callable[[], None]
"""What a job calls when all that is left of it is a comparison."""

logger = logging.getLogger(__name__)


class Comparisons:
    """The jobs of one worker that are in its hands, of which one at most is only compared."""

    def __init__(self) -> None:
        self._comparing = threading.Lock()
        self._threads: set[threading.Thread] = set()

    def carry_out(self, work: Callable[[HandOver], None]) -> None:
        """Do `work` in a thread of its own. Returns when it is over, or only compared and no other is."""
        is_free, mine = threading.Event(), threading.Event()

        def hand_over() -> None:
            if not mine.is_set() and self._comparing.acquire(blocking=False):
                mine.set()
                is_free.set()

        def whole() -> None:
            try:
                work(hand_over)
            except Exception:
                logger.exception("a job broke")
            finally:
                connections.close_all()
                self._threads.discard(threading.current_thread())
                if mine.is_set():
                    self._comparing.release()
                is_free.set()

        thread = threading.Thread(target=whole, name="job")
        self._threads.add(thread)
        thread.start()
        is_free.wait()

    def wait(self) -> None:
        """Wait until all of them are over."""
        for thread in tuple(self._threads):
            thread.join()
