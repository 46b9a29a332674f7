"""Clusters over HTTP: store, edit, import, export, check, generate."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

import topologies
from engine.domain.cluster import ClusterSpec, LinkSpec
from engine.domain.errors import EdgeLoomError, SpecError
from engine.domain.model import QuantisedBits
from engine.domain.values import NonNegative, Positive, Whole
from topologies.foreign import Defaults
from topologies.formats import MEDIA_TYPES, Format
from topologies.layout import CanvasLayout, arrange, placed
from topologies.shapes import copies, shape
from webapp.accounts import audit
from webapp.accounts.access import UserRequest, one_at_a_time, operator
from webapp.accounts.rights import Rights
from webapp.base import budgets
from webapp.base.files import read_drawing
from webapp.clusters import services
from webapp.clusters.models import Cluster
from webapp.clusters.validation import Fits, Validation, validate
from webapp.jobs import answers

router = Router(tags=["clusters"])
logger = logging.getLogger(__name__)


class Drawing(Schema):
    """A cluster and how it is drawn."""

    spec: ClusterSpec
    layout: CanvasLayout = CanvasLayout()


class Edit(Drawing):
    version: Whole = Field(
        description="The version that was edited; 409 if it is not the stored one any more."
    )


class ClusterOut(Drawing):
    id: int
    name: str
    title: str
    created_at: datetime
    updated_at: datetime
    num_devices: int
    num_links: int
    version: int
    owner: str
    template: bool
    locked: str | None = Field(description="Why you may not change it; null if you may.")


class ImportIn(Schema):
    text: str
    kind: Literal["toml", "json", "yaml", "mn", "graphml", "gml"] = Field(
        default="toml", description="A cluster file, or a drawing of MiniEdit, in GraphML or in GML."
    )
    name: str = Field(default="", max_length=200, description="Of the file: the cluster is called after it.")
    preset: str = Field(
        default=Defaults().preset, description="What devices are of which the drawing does not say it."
    )
    bit_per_s: Positive = Field(
        default=Defaults().bit_per_s, description="Of links of which the drawing does not say it."
    )


class ValidationIn(Schema):
    spec: dict[str, Any]
    layout: CanvasLayout = CanvasLayout()
    model: str | None = None
    weight_bits: QuantisedBits | None = None
    strategy: str | None = None


class ShapeIn(Schema):
    shape: Literal["star", "ring", "mesh", "tree"]
    devices: Whole = Field(ge=1, le=64)
    preset: str
    bit_per_s: Positive = 100e6
    delay_s: NonNegative = 0.0


def row(cluster: Cluster, rights: Rights) -> ClusterOut:
    spec = services.spec_of(cluster)
    return ClusterOut(
        id=cluster.pk,
        name=cluster.name,
        title=cluster.title,
        created_at=cluster.created_at,
        updated_at=cluster.updated_at,
        num_devices=len(spec.devices),
        num_links=len(spec.links),
        spec=spec,
        layout=services.layout_of(cluster),
        version=cluster.version,
        owner=cluster.owner.username if cluster.owner else "",
        template=cluster.template,
        locked=services.locked(cluster, rights),
    )


@router.get("", response=list[ClusterOut])
def list_clusters(request: UserRequest) -> list[ClusterOut]:
    """The clusters that can be read: a cluster that a newer version of EdgeLoom stored may be left out."""
    rows, rights = [], Rights.of(request.auth)
    for cluster in Cluster.objects.select_related("owner"):
        try:
            rows.append(row(cluster, rights))
        except SpecError as error:
            logger.warning("the list of clusters leaves out %s: %s", cluster.name, error)
    return rows


@router.post("", response={201: ClusterOut}, auth=operator)
def create_cluster(request: UserRequest, drawing: Drawing) -> Status[ClusterOut]:
    made = services.create(drawing.spec, drawing.layout, request.auth)
    return Status(201, row(made, Rights.of(request.auth)))


@router.post("/import", response=Drawing, auth=operator)
@one_at_a_time
def import_drawing(request: HttpRequest, body: ImportIn) -> Drawing:
    """Read a cluster file or the drawing of another program; nothing is stored."""
    budgets.check_drawing_text(body.text)
    where = body.name or ("cluster file" if body.kind in topologies.FORMATS else f"drawing.{body.kind}")
    drawn = read_drawing(body.text, body.kind, where, Defaults(body.preset, body.bit_per_s))
    return Drawing(spec=drawn.spec, layout=placed(*drawn))


@router.post("/validate", response=Validation)
def validate_cluster(request: UserRequest, body: ValidationIn) -> Validation:
    """What is wrong with a drawing, and whether a model fits on it: it lists. With a strategy, which has to
    plan for that, a planning worker answers.
    """
    if body.model is None or body.strategy is None:
        return validate(body.spec, body.layout, body.model, None, body.weight_bits)
    drawn = validate(body.spec, body.layout, None, None)
    if drawn.problems:
        return drawn
    arguments = [body.spec, body.layout.model_dump(mode="json"), body.model, body.strategy, body.weight_bits]
    try:
        large = budgets.is_large(len(body.spec["devices"]))  # it is a cluster: it has no problems
        answer = answers.ask("plan.validate", arguments, request.auth.pk, large)
    except EdgeLoomError as error:  # nobody plans, or it takes too long: the drawing itself is in order
        fits = Fits(
            model=body.model, weight_bits=body.weight_bits, strategy=body.strategy, sentence=str(error)
        )
        return Validation(problems=(), fits=fits)
    return Validation.parse(answer["validation"], "validation")


@router.post("/shape", response=Drawing)
def make_shape(request: HttpRequest, body: ShapeIn) -> Drawing:
    """A star, ring, mesh or tree of equal devices; nothing is stored."""
    devices = copies(topologies.preset(body.preset), body.devices)
    link = LinkSpec(a="a", b="b", bit_per_s=body.bit_per_s, delay_s=body.delay_s)
    spec = shape(body.shape)(devices, link)
    return Drawing(spec=spec, layout=arrange(spec))


@router.get("/{int:cluster_id}", response=ClusterOut)
def get_cluster(request: UserRequest, cluster_id: int) -> ClusterOut:
    return row(services.find(cluster_id), Rights.of(request.auth))


@router.put("/{int:cluster_id}", response=ClusterOut, auth=operator)
def update_cluster(request: UserRequest, cluster_id: int, edit: Edit) -> ClusterOut:
    changed = services.update(cluster_id, edit.spec, edit.layout, edit.version, request.auth)
    audit.note(request.auth, "changed", f"cluster {changed.name}, now version {changed.version}")
    return row(changed, Rights.of(request.auth))


@router.delete("/{int:cluster_id}", response={204: None}, auth=operator)
def delete_cluster(request: UserRequest, cluster_id: int) -> Status[None]:
    """Runs keep their own copy of the cluster."""
    cluster = services.owned(cluster_id, request.auth)
    cluster.delete()
    audit.note(request.auth, "deleted", f"cluster {cluster.name}")
    return Status(204, None)


@router.get("/{int:cluster_id}/{form}")
def export_cluster(request: HttpRequest, cluster_id: int, form: Format) -> HttpResponse:
    """The cluster as a file: `import` reads it back as the same drawing."""
    cluster = services.find(cluster_id)
    drawn = topologies.Drawn(services.spec_of(cluster), services.layout_of(cluster))
    return HttpResponse(
        topologies.dump_drawing(drawn, form),
        content_type=f"{MEDIA_TYPES[form]}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{cluster.name}.{form}"'},
    )
