"""Lets the devices of a real run rehearse before its clock starts, and sets the dilation that follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain.events import TRACE, StateChanged
from engine.domain.network import LinkMeasurement, Network
from engine.runs.active_run import ActiveRun
from engine.runs.pool import DevicePool
from engine.runs.rehearsal import Rehearsal

LEAD_S = 0.02
"""Wall seconds between the order to begin and the beginning."""

Collect = Callable[[str], bool]


class Rehearser:
    """Plays the rehearsal of one run. `note` takes what a device says of it; nothing of it gets into the
    run's trace.
    """

    def __init__(self, run: ActiveRun, pool: DevicePool, network: Network, collect: Collect):
        self.run, self.pool, self.network, self._collect = run, pool, network, collect
        self._said: dict[str, dict[str, Any]] = {}

    def note(self, device: str, message: dict[str, Any]) -> None:
        self._said[device] = message

    def play(self, rehearsal: Rehearsal) -> list[LinkMeasurement] | None:
        """Rehearse as often as it is worth it, and set the least dilation that one of them asked for. Returns
        the measurements of the links if they were changed.
        """
        self.run.emit(StateChanged(state="loading", detail="rehearsing"))
        before, asked = self.run.dilation, []
        for number in range(rehearsal.times):
            if not self._once(rehearsal, number):
                return None
            asked.append(self._needed(rehearsal))
            if asked[-1] <= before:
                return None
        self.run.dilation = min(asked)
        self.network.dilate(self.run.dilation)
        return self.network.measure()

    def _once(self, rehearsal: Rehearsal, number: int) -> bool:
        self._said.clear()
        requests = [request.model_dump(mode="json") for request in rehearsal.requests]
        for child in self.pool.children.values():
            child.state = "rehearsing"
        self.pool.send_all(
            type="rehearse",
            epoch=-1 - number,
            start_s=self.run.clock() + LEAD_S,
            dilation=self.run.dilation,
            requests=requests,
        )
        return self._collect("rehearsed")

    def _needed(self, rehearsal: Rehearsal) -> float:
        trace = [item for said in self._said.values() for item in TRACE.validate_python(said["items"])]
        pacing = {device: said["rehearsal"] for device, said in self._said.items()}
        return rehearsal.needed(trace, pacing, self.run.dilation)
