"""Runs on loopback, without root or Mininet: `python -m engine.runs.local SPEC.json…` writes one line a run.

Enough for correctness, bytes and the speed of the runtime itself; other figures need shaped links.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.domain.events import Event, of_last_attempt, to_json
from engine.domain.network import LoopbackNetwork
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.models.reference.process import one_process
from engine.runs.execute import execute


def run_local(spec: RunSpec) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Report and trace (as events) of a run over loopback."""
    events: list[Event] = []
    report = execute(spec, lambda spec, dilation: LoopbackNetwork(spec.cluster), events.append)
    trace = to_json([event for event in of_last_attempt(events) if isinstance(event, Span | Mark)])
    return report.model_dump(mode="json"), trace


def main(paths: Iterable[str]) -> int:
    with one_process():
        for path in paths:
            spec = RunSpec.parse(json.loads(Path(path).read_text()), path)
            report, trace = run_local(spec)
            sys.stdout.write(json.dumps({"report": report, "trace": trace}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
