"""`calibrate_host`: measures this machine when somebody asks for it, beside no run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emulator.calibration.calibrate import Measured
from emulator.calibration.known import keep
from emulator.calibration.report import HELD_OUT, HELD_OUT_ROWS, measured_steps
from emulator.calibration.shapes import THOROUGH, Extent
from emulator.host.places import queue_name
from emulator.session.calls import call_in
from emulator.session.client import expect_emulations
from emulator.session.link_messages import with_link_messages
from emulator.session.turns import Wait, turn


def calibrate_host(
    extent: Extent,
    progress: Callable[[str], None] = lambda what: None,
    check: Callable[[], None] = lambda: None,
    begun: Callable[[], None] = lambda: None,
) -> Measured:
    """Wait until no run goes on here, measure, and keep the result. Raises `HostError`.

    `progress` gets what is being measured or waited for; `begun` is called when the wait is over. `check` is
    called several times a second and may raise, which ends the work and leaves what is known as it was.
    A thorough calibration is also tested on operations of models that it has not seen.
    """

    def waiting(wait: Wait) -> None:
        progress(f"waiting: {wait}")

    models, rows = (HELD_OUT, HELD_OUT_ROWS) if extent is THOROUGH else ((), ())
    with turn(queue_name(), waiting, check, alone=True, purpose="calibration") as mine:
        begun()
        expect_emulations()  # imported beside the child's own imports; the runs over links need it
        found = measured_steps(extent, models, rows, progress, check)
        progress("messages over links, and a crowd of devices")
        calibration = with_link_messages(found.calibration, extent, partial(call_in, mine, check=check))
        keep(calibration, found.raw._asdict())
    return found._replace(calibration=calibration)
