"""Decides which workers may work: by the code that they run and the fleet runs, and by who is drained."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache

from django.conf import settings
from django.db.models import TextField
from django.db.models.functions import Cast

from engine.experiments.execution.version import version_of
from engine.plugins.packs import installed_packs
from engine.strategies.registry import installed_code
from webapp.base.database import Prepared
from webapp.jobs.models import Drain, Release

FOLDERS = (
    "engine",
    "emulator",
    "topologies",
    *(f"webapp/{room}" for room in ("jobs", "events", "runs", "experiments", "advice", "clusters")),
)
"""The code that workers and server must have alike."""

# What every worker asks at every beat.
RELEASE = Prepared(lambda: Release.objects.filter(pk=1).values_list("version", Cast("uses", TextField())))
DRAINS = Prepared(lambda: Drain.objects.values_list("worker", "by"))


@cache
def code_version() -> str:
    """The version of this process's code; it hashes the files once, when it starts."""
    return version_of(settings.BASE_DIR / folder for folder in FOLDERS)


def prepare_release() -> None:
    """Let only workers with this process's code work from now on, and only those plan that have the same
    methods from outside and packs.
    """
    uses = [*installed_code(), *installed_packs()]
    Release.objects.update_or_create(pk=1, defaults={"version": code_version(), "uses": uses})


def released() -> str:
    """The version of the fleet; "" if the database has never been prepared by `./loom up`."""
    return next((version for version, _ in RELEASE.all()), "")


def reason_to_rest(place: str, version: str) -> str:
    """Why the worker at `place` with this version takes nothing at present, or ""."""
    wanted = released()
    if wanted and version != wanted:
        return (
            f"its code has the version {version} and the server's has {wanted}: "
            "give it the server's version and start it again"
        )
    drained_by = dict(DRAINS.all())
    return f"it was drained by {drained_by[place]}" if place in drained_by else ""


def reason_not_to_plan(has: Collection[str]) -> str:
    """Why a worker that `has` these methods and packs cannot answer the server's questions, or ""."""
    lacking = [one for _, uses in RELEASE.all() for one in json.loads(uses) if one not in has]
    if not lacking:
        return ""
    return (
        f"it lacks {' and '.join(lacking)}, which the server uses: install the same there, and name it in "
        "LOOM_METHODS, a pack in LOOM_DATA"
    )


def drain(place: str, by: str) -> None:
    Drain.objects.get_or_create(worker=place, defaults={"by": by})


def is_drained(place: str) -> bool:
    return Drain.objects.filter(worker=place).exists()


def undrain(place: str) -> None:
    Drain.objects.filter(worker=place).delete()
