"""Log lines: as JSON objects with the id of the run that they are about, and without traces of what only a
request did wrong.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

RUN = re.compile(r"\brun (\d+)\b")


class JsonLines(logging.Formatter):
    """One object a line: `time` (UTC), `level`, `logger`, `message`, `process`, and where known `run` and
    `exception`.

    A line is about the run that its thread works for (the threads of a run are named after it), else about
    the one that its message names.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        row = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
            "process": record.process,
        }
        about = RUN.search(record.threadName or "") or RUN.search(message)
        if about is not None:
            row["run"] = int(about.group(1))
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)


class OwnTraces(logging.Filter):
    """Takes the stack trace from what Django says of a suspicious request, such as one for another host name:
    its sentence says all, and nothing here is broken.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.exc_info = None
        return True
