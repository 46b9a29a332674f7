"""Take the experiments of a study that somebody has packed elsewhere: as designs to carry out here, with its
results beside them.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from engine.domain import experiment as domain
from engine.domain.cluster import ClusterSpec
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.units import human
from engine.experiments.design.written_out import with_clusters
from engine.experiments.results.rows import Row
from webapp.base import budgets
from webapp.base.bodies import check_value
from webapp.base.errors import TooMany, Unavailable
from webapp.base.files import read_study
from webapp.experiments import answers, checks, services
from webapp.experiments.design import imported, sizes
from webapp.experiments.design.sources import cluster
from webapp.experiments.schemas import ExperimentOut, StudyOut


def take(data: bytes, where: str, user: User) -> StudyOut:
    """Store them as `user`'s. Raises `SpecError`, `HostError`."""
    if len(data) > budgets.MAX_STUDY_BYTES:
        raise SpecError(
            f"{where}: is larger than {human(budgets.MAX_STUDY_BYTES, 'B')}: open it with `{COMMAND} study`.",
            [("file", "too large")],
        )
    study = read_study(data, where)
    for rows in study.rows:
        budgets.check_results(len(rows), where)
    others = {name: one for name, one in study.clusters.items() if not is_here(name, one)}
    values = [with_clusters(experiment, others) if others else experiment for experiment in study.experiments]
    for value in values:
        check_value(value.model_dump(mode="json"))
        sizes.check(value)
    with transaction.atomic():
        stored = [services.create(value, None, user) for value in values]
        for one, rows in zip(stored, study.rows, strict=True):
            imported.keep(one, study.study, rows, where)
    told = [same(value, digests_of(rows), user) for value, rows in zip(values, study.rows, strict=True)]
    shown = [ExperimentOut.model_validate(answers.detail(one, user)) for one in stored]
    return StudyOut(experiments=shown, told=" ".join(filter(None, told)))


def is_here(name: str, theirs: ClusterSpec) -> bool:
    try:
        return cluster(name) == theirs
    except SpecError:
        return False


def digests_of(rows: Iterable[Row]) -> set[str]:
    return {row.digest for row in rows if row.digest}


def same(value: domain.Experiment, digests: set[str], user: User) -> str:
    """How many points are the runs of the study, in a sentence."""
    try:
        found = checks.check(value.model_dump(mode="json"), None, user)
    except (TooMany, Unavailable):
        return ""
    here = {point.digest for point in found.points if point.digest}
    name, number = value.title or value.name, len(here & digests)
    if number == len(digests):
        return f"{name}: every run of the study can be carried out here as it was."
    return (
        f"{name}: {number} of the {len(digests)} runs of the study are the same here; for the others this "
        f"server has another model, method or version. {found.sentence}".strip()
    )
