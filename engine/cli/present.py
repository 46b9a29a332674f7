"""Show the report of a finished command: as JSON (`--json`), as tables, and as an exit status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from engine.cli.tables import show_report
from engine.domain.errors import SpecError
from engine.domain.report import RunReport
from engine.domain.stored import to_document
from engine.domain.world import MEASURED


def present(report: RunReport, args: argparse.Namespace) -> int:
    """Write `report` as `--json` says (`-`: only JSON on standard output); returns the exit status."""
    if args.json:
        write_json(json.dumps(to_document(report), indent=2, ensure_ascii=False), args.json)
    if args.json != "-":
        show_report(report, sys.stdout)
        sys.stdout.flush()
    reason = verdict(report)
    if reason:
        sys.stderr.write(f"{reason}\n")
    return exit_status(report)


def check_writable(target: str | None) -> None:
    """Check before a long command that `write_json` can write to `target`; raises `SpecError`."""
    if not target or target == "-":
        return
    path = Path(target)
    folder = path.parent
    reason = ""
    if not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif path.is_dir():
        reason = "it is a folder"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        reason = "permission denied"
    if reason:
        raise SpecError(f"--json {target}: cannot write: {reason}.")


def write_json(text: str, target: str) -> None:
    """Write JSON to the file `target`, or to standard output if it is `-`; raises `SpecError` if
    it cannot.
    """
    if target == "-":
        sys.stdout.write(text + "\n")
        return
    try:
        Path(target).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise SpecError(f"--json {target}: cannot write: {error.strerror}.") from error


def verdict(report: RunReport) -> str:
    """Why the exit status is not 0, in one line; empty if it is."""
    if exit_status(report) == 0:
        return ""
    if report.outcome.kind != "finished":
        return report.outcome.sentence or report.outcome.kind.replace("_", " ")
    facts, why = report.correctness, []
    if not (facts.ok or (facts.checked and facts.lossy and facts.ok is None)):
        why.append(f"not correct: {facts.why or 'the outputs were not compared with the reference'}")
    if not is_valid(report):
        why.append(f"not valid: {' '.join(report.fidelity.why) or 'its times could not be judged'}")
    return "; ".join(why)


def exit_status(report: RunReport) -> int:
    """The command's exit status: 0 for a run that finished, 3 for any other result. A run that computed and
    sent must also be proved correct, or lossy as announced, and valid.
    """
    if report.outcome.kind != "finished":
        return 3
    if report.world not in MEASURED:
        return 0
    facts = report.correctness
    proved = facts.ok or (facts.checked and facts.lossy and facts.ok is None)
    return 0 if proved and is_valid(report) else 3


def is_valid(report: RunReport) -> bool:
    """Whether the times are valid. A native run is, unless its report says that it failed a check."""
    if report.world == "native":
        return report.fidelity.valid is not False
    return report.fidelity.valid is True
