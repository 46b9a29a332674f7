"""Pictures for runs: prepare an uploaded one, or make the random one, in the size that the model reads."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import File, Router, Schema
from ninja.files import UploadedFile

from engine.domain.errors import SpecError
from engine.domain.vision import VisionSpec
from engine.models.inputs.pictures import MAX_FILE_BYTES, random_encoded
from webapp.accounts.access import one_at_a_time, operator
from webapp.base.files import read_picture
from webapp.clusters.catalogue import resolve_model

router = Router(tags=["catalogue"])


class PictureOut(Schema):
    """A picture for a workload. `image` is what a workload takes: a PNG of the model's size, in base64."""

    image: str
    image_size: int


@router.post("/models/{name}/picture", response=PictureOut, auth=operator)
@one_at_a_time
def prepare_picture(request: HttpRequest, name: str, file: File[UploadedFile]) -> PictureOut:
    """A PNG or JPEG file → the picture as the model sees it. Nothing is stored."""
    vision = _vision_of(name)
    if (file.size or 0) > MAX_FILE_BYTES:
        why = f"is larger than {MAX_FILE_BYTES / 1e6:.0f} MB"
        raise SpecError(f"{file.name}: {why}: give a smaller file.", [("workload.image", why)])
    return PictureOut(image=read_picture(vision, file.read(), str(file.name)), image_size=vision.image_size)


@router.get("/models/{name}/picture", response=PictureOut)
def random_picture(request: HttpRequest, name: str, seed: int = 0) -> PictureOut:
    """The random picture of the first request of a run with this seed."""
    vision = _vision_of(name)
    return PictureOut(image=random_encoded(vision, seed, 0), image_size=vision.image_size)


def _vision_of(name: str) -> VisionSpec:
    model, _ = resolve_model(name, "random")
    if model.vision is None:
        raise SpecError(
            f"{name} sees no pictures: choose a model that does.", [("model", f"{name} sees no pictures")]
        )
    return model.vision
