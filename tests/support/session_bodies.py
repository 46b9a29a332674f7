"""A session that builds a network and then stays, for tests that kill it."""

import os
import sys
import time

from tests.support.network_bodies import opened


def stay(spec: dict[str, object], ready: str) -> None:
    """Build the network, say so by making the file `ready`, and stay until killed."""
    with opened(spec):
        with open(ready, "w") as file:  # noqa: PTH123  (nothing else is wanted here)
            file.write("ready")
        time.sleep(1000)


def cores() -> list[int]:
    """Those that a session may use."""
    return sorted(os.sched_getaffinity(0))


def main() -> None:
    """`python session_bodies.py SPEC.json READY`: own such a session."""
    import json
    from pathlib import Path

    from emulator.session.calls import call

    call(stay, json.loads(Path(sys.argv[1]).read_text()), sys.argv[2])


if __name__ == "__main__":
    from tests.support.session_bodies import (
        main as run,  # under its importable name, which the session needs too
    )

    run()
