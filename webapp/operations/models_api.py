"""Models over HTTP: those that people added, adding one by upload, removing one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import File, Form, Router, Schema
from ninja.files import UploadedFile
from ninja.responses import Status
from pydantic import Field

from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.units import human
from webapp.accounts import audit, rights
from webapp.accounts.access import UserRequest, one_at_a_time, operator
from webapp.clusters import model_library
from webapp.clusters.models import StoredModel

router = Router(tags=["models"])
MAX_FILES = 200


class AddedModel(Schema):
    name: str
    digest: str
    bytes: int
    by: str
    since: datetime


class AddedModels(Schema):
    models: list[AddedModel]
    max_bytes: int = Field(description="The largest model that may be uploaded.")


@router.get("", response=AddedModels)
def list_models(request: HttpRequest) -> AddedModels:
    rows = [AddedModel.from_orm(row) for row in StoredModel.objects.all()]
    return AddedModels(models=rows, max_bytes=settings.MODEL_BYTES)


@router.post("", response={201: AddedModel}, auth=operator)
@one_at_a_time
def add_model(request: UserRequest, files: File[list[UploadedFile]], name: Form[str]) -> Status[StoredModel]:
    """Upload the files of a Hugging Face directory: config.json, safetensors, tokenizer.json and the like.

    They are checked before they are kept; large ones go to the disk as they arrive.
    """
    model_library.check_name(name)
    check_sizes(files)
    with tempfile.TemporaryDirectory(dir=settings.FILE_UPLOAD_TEMP_DIR) as folder, without(folder):
        for file in files:
            with (Path(folder) / Path(file.name or "").name).open("xb") as copy:
                shutil.copyfileobj(file, copy)
        added = model_library.add(Path(folder), name, request.auth.username)
    audit.note(request.auth, "added", f"model {name}, digest {added.digest[:12]}")
    return Status(201, added)


@contextmanager
def without(folder: str) -> Iterator[None]:
    """Leave out `folder` in refusals: files have the names that they were sent with."""
    try:
        yield
    except SpecError as error:
        fields = [(path, text.replace(f"{folder}/", "")) for path, text in error.fields]
        sentence = str(error).replace(f"{folder}/", "").replace(folder, "The upload")
        raise SpecError(sentence, fields) from error


def check_sizes(files: list[UploadedFile]) -> None:
    """Check the number and names of uploaded files; raises `SpecError`."""
    names = [Path(file.name or "").name for file in files]
    if len(files) > MAX_FILES or len(set(names)) < len(names) or "" in names:
        sentence = f"The upload has {len(files)} files, expected at most {MAX_FILES} with different names."
        raise SpecError(sentence, [("files", "too many, or a name twice")])
    total = sum(file.size or 0 for file in files)
    if total > settings.MODEL_BYTES:
        raise SpecError(
            f"The files have {human(total, 'B')} together, and the limit is "
            f"{human(settings.MODEL_BYTES, 'B')}: "
            f"add the model on the server with {COMMAND} models add DIR.",
            [("files", "too large")],
        )


@router.delete("/{name}", response={204: None}, auth=operator)
def remove_model(request: UserRequest, name: str) -> Status[None]:
    """Runs that are queued with this model wait until it is added again. Only who added it and
    administrators may remove it.
    """
    model = StoredModel.objects.filter(name=name).first()
    if model is not None:
        rights.require(request.auth, User.objects.filter(username=model.by).first(), f"Model {name}")
    model_library.remove(name)
    audit.note(request.auth, "deleted", f"model {name}")
    return Status(204, None)
