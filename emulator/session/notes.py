"""What a report says about the rights of its emulation."""

from __future__ import annotations

from typing import NamedTuple

from emulator.host.rights import grants, rights
from engine.domain.command_name import COMMAND
from engine.domain.events import ReportMade


class Notes(NamedTuple):
    """Sentences about this machine for reports. `always`: a sentence for every report, or "". `if_invalid`:
    one for reports that are not valid.
    """

    always: str = ""
    if_invalid: str = ""

    def added_to(self, made: ReportMade) -> ReportMade:
        fidelity = made.fidelity
        wanted = (self.always, self.if_invalid if fidelity.valid is False else "")
        notes = (*fidelity.notes, *filter(None, wanted))
        return made.model_copy(update={"fidelity": fidelity.model_copy(update={"notes": notes})})


def notes() -> Notes:
    """The notes of the emulations that this process starts."""
    missing = [grant.name for grant in grants() if not grant.ok and grant.punctual]
    if not missing:
        return Notes(rights().note)
    names = " and ".join(missing)
    return Notes(
        rights().note,
        f"This user may not give emulations {names}, without which a busy machine delays them: "
        f"{COMMAND} doctor has the line that allows it.",
    )
