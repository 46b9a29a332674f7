"""Pictures from browsers: taken if they are pictures, made the model's size, kept with the run."""

import base64
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from engine.models.inputs.pictures import MAX_FILE_BYTES
from tests.support.web import Browser, request_body
from webapp.runs.requests import RunRequest, spec_of

pytestmark = pytest.mark.django_db(transaction=True)
SEES = {"model": "tiny-vit", "workload": {"new_tokens": 0}}


def file_of(width: int, height: int, kind: str = "PNG") -> bytes:
    out = BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(out, format=kind)
    return out.getvalue()


def upload(browser: Browser, model: str, data: bytes):
    return browser.client.post(
        f"/api/models/{model}/picture",
        {"file": SimpleUploadedFile("cat.png", data)},
        headers={"X-CSRFToken": browser.client.cookies["csrftoken"].value},
    )


def size_of(image: str) -> tuple[int, int]:
    return Image.open(BytesIO(base64.b64decode(image))).size


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_an_uploaded_picture_comes_back_as_the_model_sees_it(alice: Browser, kind: str) -> None:
    for model, size in (("tiny-vit", 24), ("vit-base", 224)):
        answer = upload(alice, model, file_of(300, 200, kind)).json()
        assert answer["image_size"] == size and size_of(answer["image"]) == (size, size)


def test_a_picture_larger_than_the_web_server_s_own_limit_is_taken(alice: Browser, settings) -> None:
    """Multipart files are no fields: only their own limit counts."""
    data = file_of(300, 200) + b"\0" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE  # what follows a PNG is ignored
    assert upload(alice, "tiny-vit", data).status_code == 200


@pytest.mark.parametrize(
    ("model", "data", "sentence"),
    [
        ("tiny-vit", b"<svg/>", "cat.png: is neither PNG nor JPEG"),
        ("tiny-vit", b"x" * (MAX_FILE_BYTES + 1), "cat.png: is larger than 10 MB"),
        ("tiny-gpt2", file_of(9, 9), "tiny-gpt2 sees no pictures"),
        ("gpt-9", file_of(9, 9), "There is no model gpt-9"),
    ],
)
def test_what_is_no_picture_or_not_seen_is_refused(alice: Browser, model, data, sentence) -> None:
    response = upload(alice, model, data)
    assert response.status_code == 422 and sentence in response.json()["detail"]


def test_an_upload_without_log_in_is_refused() -> None:
    assert upload(Browser(), "tiny-vit", file_of(9, 9)).status_code == 401


def test_the_random_picture_of_a_seed_can_be_looked_at(victor: Browser) -> None:
    first = victor.get("/models/tiny-vit/picture", seed=1).json()["image"]
    assert size_of(first) == (24, 24)
    assert first != victor.get("/models/tiny-vit/picture", seed=2).json()["image"]
    assert first == victor.get("/models/tiny-vit/picture", seed=1).json()["image"]
    assert victor.get("/models/tiny-gpt2/picture").status_code == 422


def test_a_run_keeps_the_picture_in_the_model_s_size(alice: Browser, live_redis) -> None:
    raw = base64.b64encode(file_of(300, 200)).decode()
    workload = {"image": raw, "new_tokens": 0}
    response = alice.post("/runs", request_body(**SEES | {"workload": workload}))
    assert response.status_code == 200 or response.status_code == 201, response.json()
    run = alice.get(f"/runs/{response.json()['id']}").json()
    kept = run["spec"]["workload"]["image"]
    assert size_of(kept) == (24, 24) and run["request"]["workload"]["image"] == kept
    again = spec_of(RunRequest.parse(run["request"], "again"))
    assert again.workload.image == kept


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"model": "tiny-gpt2", "workload": {"prompt_tokens": 4, "image": "AA"}}, "workload.image"),
        (SEES | {"workload": {"image": "no", "new_tokens": 0}}, "workload.image"),
        (SEES | {"workload": {"prompt": "what is it?", "new_tokens": 0}}, "workload"),
    ],
)
def test_a_workload_that_the_model_cannot_see_is_refused_with_the_field(
    alice: Browser, live_redis, overrides, path
) -> None:
    response = alice.post("/runs", request_body(**overrides))
    assert response.status_code == 422
    assert path in {field["path"] for field in response.json()["fields"]}


def test_forms_learn_what_models_see(victor: Browser) -> None:
    rows = {row["name"]: row for row in victor.get("/catalogue").json()["models"]}
    facts = {name: (row["reads_text"], row["image_rows"], row["num_classes"]) for name, row in rows.items()}
    assert facts["tiny-gpt2"] == (True, 0, 0)
    assert facts["tiny-vit"] == (False, 10, 10)
    assert facts["llava-7b"] == (True, 576, 0)


@pytest.mark.parametrize("model", ["tiny-vit", "tiny-llava"])
def test_a_drawing_is_checked_for_models_that_see(victor: Browser, model: str) -> None:
    spec = request_body()["cluster"]
    body = {"spec": spec, "layout": {"positions": {}, "disabled": []}, "model": model, "strategy": "gpipe"}
    fits = victor.post("/clusters/validate", body).json()["fits"]
    assert fits["fits"] is True, fits
