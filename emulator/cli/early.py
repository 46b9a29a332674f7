"""What a command begins before it has imported what it needs itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from emulator.session.isolation import prepare
from engine.domain.errors import HostError

SERVER = "emulator.session.server"


def begin_early(argv: Sequence[str]) -> None:
    """Let the process that a `run` is forked from import what that needs, torch for one, beside all that this
    one does until it knows what is asked. Where that cannot begin, the run says why.
    """
    if argv[:1] == ["run"] and not {"-h", "--help"} & set(argv):
        with suppress(HostError, OSError):
            prepare(SERVER, many=False, urgent=True)
