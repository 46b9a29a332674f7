"""What installed packages declare and this process cannot use, and why."""

from __future__ import annotations

from engine.models.catalogue import models_of_packs
from engine.plugins.installed import Unusable
from engine.plugins.packs import packs
from engine.reports.metrics import UNUSABLE as METRICS
from engine.strategies.registry import UNUSABLE as METHODS
from topologies.files import clusters_of_packs
from topologies.presets import presets_of_packs
from topologies.traces import traces_of_packs


def left_out_of_packs() -> tuple[Unusable, ...]:
    found = (packs(), presets_of_packs(), clusters_of_packs(), traces_of_packs(), models_of_packs())
    return tuple(one for each in found for one in each.unusable)


def left_out() -> tuple[str, ...]:
    """The reasons, methods and figures included, in sentences."""
    return tuple(one.reason for one in (*METHODS, *METRICS, *left_out_of_packs()))
