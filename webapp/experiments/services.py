"""Store, read and change experiments; who may do that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet
from django.http import Http404
from django.utils import timezone

from engine.domain import experiment as domain
from engine.domain.errors import SpecError
from engine.domain.stored import to_document
from webapp.accounts import rights
from webapp.base import budgets
from webapp.base.bodies import check_value
from webapp.base.errors import Conflict
from webapp.base.files import read_experiment
from webapp.experiments.design import sizes
from webapp.experiments.models import Execution, Experiment, Imported

PRESENTED = frozenset(
    ("name", "title", "description", "paper", "figures", "tables", "published", "claims", "assumptions")
)
"""What an experiment shows of its points; the rest says which points there are."""


def find(experiment_id: int) -> Experiment:
    try:
        return Experiment.objects.select_related("owner").get(pk=experiment_id)
    except Experiment.DoesNotExist:
        raise Http404(f"There is no experiment {experiment_id}") from None


def may_change(experiment: Experiment, user: User) -> bool:
    return rights.Rights.of(user).locked(experiment.owner) is None


def owned(experiment_id: int, user: User) -> Experiment:
    """The experiment, for somebody who is about to change it. Raises 403 if they may not."""
    experiment = find(experiment_id)
    rights.require(user, experiment.owner, experiment, ", or save a copy of it as your own")
    return experiment


def parse(
    fields: dict[str, Any] | None, toml: str | None, recorded: Mapping[str, str] | None = None
) -> domain.Experiment:
    """The experiment that a person sent, as fields or as a TOML file with the `recorded` files that it names.
    Raises `SpecError`, also for one that is too large.
    """
    if (fields is None) == (toml is None):
        sentence = "An experiment comes as its fields or as a file: give either experiment or toml."
        raise SpecError(sentence, [("experiment", "give this or toml")])
    if toml is not None:
        budgets.check_experiment_text(toml, "toml")
        value = read_experiment(toml, "experiment file", recorded or {})
        budgets.check_written_out(value.model_dump_json())
        check_value(value.model_dump(mode="json"))
    else:
        budgets.check_experiment_text(json.dumps(fields), "experiment")
        value = domain.Experiment.parse(fields, "experiment")
    sizes.check(value)
    return value


def create(value: domain.Experiment, name: str | None, owner: User | None) -> Experiment:
    """Store an experiment. Raises `SpecError` if the owner has too many."""
    if owner is not None:
        stored = Experiment.objects.filter(owner=owner).count()
        budgets.check_stored(stored, budgets.MAX_EXPERIMENTS, "experiments", owner.username)
        check_room(value, owner)
    return Experiment.objects.create(
        name=(name or value.title or value.name)[:100], document=to_document(value), owner=owner
    )


def check_room(value: domain.Experiment, owner: User, instead_of: Experiment | None = None) -> None:
    """Check that `owner` may store this beside the other experiments and versions; raises `SpecError`."""
    others = Experiment.objects.filter(owner=owner)
    if instead_of is not None:
        others = others.exclude(pk=instead_of.pk)
    stored = [others, Execution.objects.filter(owner=owner)]
    budgets.check_documents(stored, [to_document(value)], budgets.MAX_EXPERIMENTS_CHARS, owner.username)


def edit(
    experiment: Experiment, value: domain.Experiment | None, name: str | None, version: int
) -> Experiment:
    """Store an edit made to `version`; what was started goes on as it was frozen, unless the edit leaves all
    its points as they are: then its rows are those of the new version, too. Raises `Conflict`, and
    `SpecError` if the owner has too much.
    """
    changes: dict[str, Any] = {"updated_at": timezone.now()}
    if name:
        changes["name"] = name
    if value is not None and to_document(value) != experiment.document:
        if experiment.owner is not None:
            check_room(value, experiment.owner, instead_of=experiment)
        changes |= {"document": to_document(value), "version": F("version") + 1}
    with transaction.atomic():
        if not Experiment.objects.filter(pk=experiment.pk, version=version).update(**changes):
            raise Conflict(
                f"{experiment} was changed meanwhile (you edited version {version}, stored is "
                f"{experiment.version}): reload it and edit again, or save yours as a copy."
            )
        if "document" in changes and points_of(changes["document"]) == points_of(experiment.document):
            started = experiment.executions.filter(version=version)
            started.update(version=version + 1, document=changes["document"])
            Imported.objects.filter(experiment=experiment, version=version).update(version=version + 1)
    return find(experiment.pk)


def points_of(document: dict[str, Any]) -> dict[str, Any]:
    """The part of an experiment's document that says which points it has."""
    return {key: value for key, value in document.items() if key not in PRESENTED}


def last_execution(experiment: Experiment) -> Execution | None:
    return experiment.executions.order_by("-version").first()


def last_executions(experiments: QuerySet[Experiment]) -> dict[int, Execution]:
    """Experiment → the version that was started last."""
    found: dict[int, Execution] = {}
    for execution in Execution.objects.filter(experiment__in=experiments).order_by("version"):
        if execution.experiment_id is not None:
            found[execution.experiment_id] = execution
    return found
