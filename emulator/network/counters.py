"""Reads from /proc/net/dev of every node how many bytes each direction of each link has carried."""

from __future__ import annotations

import re
import threading
from typing import NamedTuple, TextIO

from emulator.network.layout import NetworkLayout

LINE = re.compile(r"^\s*(\S+):\s*(?:\d+\s+){8}(\d+)", re.MULTILINE)


class LinkBytes(NamedTuple):
    """Bytes sent so far (frames, so 4.6 % more than payload) in one direction of a link."""

    link: int
    forward: bool
    sent_bytes: int


class Counters:
    """Keeps one file per node open while the network exists, so that reading starts no process."""

    def __init__(self, layout: NetworkLayout, pids: dict[str, int]):
        self._files: dict[str, TextIO] = {
            name: open(f"/proc/{pid}/net/dev", encoding="ascii")  # noqa: PTH123, SIM115  (closed in `close`)
            for name, pid in pids.items()
        }
        self._ends = layout.ends
        self._lock = threading.Lock()

    def read(self) -> list[LinkBytes]:
        """Every direction of every link, link by link."""
        sent: dict[str, int] = {}
        for file in self._files.values():
            sent |= self._read(file)
        return [
            LinkBytes(interface.link, interface.forward, sent.get(interface.name, 0))
            for pair in self._ends
            for interface in pair
        ]

    def sent(self, link: int, forward: bool) -> int:
        """Bytes of one direction: one file."""
        interface = self._ends[link][0 if forward else 1]
        return self._read(self._files[interface.node]).get(interface.name, 0)

    def _read(self, file: TextIO) -> dict[str, int]:
        with self._lock:
            file.seek(0)
            return sent_bytes(file.read())

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def sent_bytes(text: str) -> dict[str, int]:
    """Interface → transmitted bytes, from the text of /proc/net/dev."""
    return {name: int(count) for name, count in LINE.findall(text)}
