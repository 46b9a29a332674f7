"""What a device process writes to its standard output and error, read from a pipe as lines."""

from __future__ import annotations

import os
import sys

MOST_LINES = 500
MOST_CHARS = 500
LEFT_OUT = "Further lines are only in the log of the worker."


class FirstLines:
    """Of all the lines that one process writes, those that are shown."""

    def __init__(self) -> None:
        self.left = MOST_LINES

    def of(self, lines: list[str]) -> list[str]:
        """The part of `lines` that is shown: the first `MOST_LINES` of all, each cut at `MOST_CHARS`."""
        kept, left = lines[: self.left], self.left
        self.left -= len(kept)
        shown = [line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]}…" for line in kept]
        return [*shown, LEFT_OUT] if 0 < left < len(lines) else shown


class Output:
    """The reading end of a pipe. The log of this process gets every line too, with the device's `name`."""

    def __init__(self, descriptor: int, name: str):
        self.descriptor, self.name = descriptor, name
        self.pending = b""
        self.first = FirstLines()
        os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        return self.descriptor

    def read(self) -> tuple[list[str], bool]:
        """The lines that were completed since the last call, and whether more may come."""
        data, open_ = b"", True
        while open_:
            try:
                piece = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                break
            data, open_ = data + piece, bool(piece)
        *lines, self.pending = (self.pending + data).split(b"\n")
        if not open_ and self.pending:
            lines, self.pending = [*lines, self.pending], b""
        texts = [line.decode(errors="replace").rstrip() for line in lines]
        for text in texts:
            sys.stderr.write(f"{self.name}: {text}\n")
        return self.first.of(texts), open_

    def close(self) -> None:
        os.close(self.descriptor)
