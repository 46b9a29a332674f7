"""Store, read and change clusters. The API and the management commands call these functions."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.http import Http404
from django.utils import timezone
from ninja.errors import HttpError

import topologies
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.stored import read, to_document
from topologies.layout import CanvasLayout, arrange
from webapp.accounts.rights import Rights
from webapp.base import budgets
from webapp.base.errors import Conflict
from webapp.clusters.models import Cluster

DEMO = (
    "lab-3",
    "zero-4",
    "spare-4",
    "gigabit-4",
    "lab-4",
    "standby-5",
    "scarce-3",
    "helpers-4",
    "equal-6",
    "voltage-6",
    "mcu-8",
    "mcu-64",
)
"""Clusters of the folder `topologies` that every installation starts with."""


def find(cluster_id: int) -> Cluster:
    try:
        return Cluster.objects.select_related("owner").get(pk=cluster_id)
    except Cluster.DoesNotExist:
        raise Http404(f"There is no cluster {cluster_id}") from None


def spec_of(cluster: Cluster) -> ClusterSpec:
    """The stored cluster as a value. Raises `SpecError` if a newer EdgeLoom stored it in a way that cannot be
    read here.
    """
    return read(ClusterSpec, cluster.spec, f"The cluster {cluster.name}").needed()


def layout_of(cluster: Cluster) -> CanvasLayout:
    """The places of the devices in the cluster's drawing. Raises `SpecError`, as `spec_of`."""
    return read(CanvasLayout, cluster.layout, f"The drawing of {cluster.name}").needed()


def create(spec: ClusterSpec, layout: CanvasLayout, owner: User | None) -> Cluster:
    """Store a cluster. Raises `SpecError` if the name is taken, or the cluster too large."""
    budgets.check_cluster(spec, "spec")
    if owner is not None:
        stored = Cluster.objects.filter(owner=owner).count()
        budgets.check_stored(stored, budgets.MAX_CLUSTERS, "clusters", owner.username)
        check_room(Cluster.objects.filter(owner=owner), spec, layout, owner)
    try:
        with transaction.atomic():
            return Cluster.objects.create(
                name=spec.name,
                title=spec.title,
                spec=to_document(spec),
                layout=to_document(layout),
                owner=owner,
            )
    except IntegrityError as error:
        raise name_taken(spec) from error


def check_room(others: QuerySet[Cluster], spec: ClusterSpec, layout: CanvasLayout, owner: User) -> None:
    """Check that `owner` may store this beside `others`; raises `SpecError`."""
    adds = [to_document(spec), to_document(layout)]
    budgets.check_documents([others], adds, budgets.MAX_CLUSTERS_CHARS, owner.username)


def locked(cluster: Cluster, rights: Rights) -> str | None:
    """Why a person may not change the cluster; None if they may."""
    if cluster.template and rights.role != "viewer":
        return "It comes with EdgeLoom and stays as it is: save it under another name, and change that."
    return rights.locked(cluster.owner)


def owned(cluster_id: int, user: User) -> Cluster:
    """The cluster, for somebody who is about to change it. Raises 403 if they may not."""
    cluster = find(cluster_id)
    reason = locked(cluster, Rights.of(user))
    if reason is not None:
        raise HttpError(403, reason.replace("It ", f"{cluster.name} ", 1) if reason[:3] == "It " else reason)
    return cluster


def update(cluster_id: int, spec: ClusterSpec, layout: CanvasLayout, version: int, user: User) -> Cluster:
    """Store edits made to `version`; raises `Conflict` if a newer version has been stored since, and 403 if
    the user may not change it.
    """
    cluster = owned(cluster_id, user)
    budgets.check_cluster(spec, "spec")
    if cluster.owner is not None:
        check_room(
            Cluster.objects.filter(owner=cluster.owner).exclude(pk=cluster_id), spec, layout, cluster.owner
        )
    try:
        with transaction.atomic():
            changed = Cluster.objects.filter(pk=cluster_id, version=version).update(
                name=spec.name,
                title=spec.title,
                spec=to_document(spec),
                layout=to_document(layout),
                version=F("version") + 1,
                updated_at=timezone.now(),
            )
    except IntegrityError as error:
        raise name_taken(spec) from error
    if not changed:
        raise Conflict(
            f"{cluster.name} was changed meanwhile (you edited version {version}, stored is "
            f"{cluster.version}): reload it and edit again, or save yours under another name."
        )
    return find(cluster_id)


def name_taken(spec: ClusterSpec) -> SpecError:
    sentence = f"There is a cluster {spec.name} already: choose another name."
    return SpecError(sentence, [("spec.name", "is taken")])


def ensure_demo() -> list[str]:
    """Create the demo clusters that are missing; returns their names."""
    made = []
    for name in DEMO:
        if not Cluster.objects.filter(name=name).exists():
            spec = topologies.load(name)
            made_here = create(spec, arrange(spec), owner=None)
            Cluster.objects.filter(pk=made_here.pk).update(template=True)
            made.append(name)
    return made
