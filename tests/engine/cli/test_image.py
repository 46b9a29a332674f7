"""A picture on the command line: taken over as the model sees it, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from engine.cli.progress import describe
from engine.domain.stored import read_report
from engine.domain.trace import Mark
from engine.models.inputs.pictures import encoded
from tests.support.command_line import refused

SEE = ("predict", "lab-3", "--model", "tiny-vit", "--strategy", "megatron")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gradient.jpg"
    Image.linear_gradient("L").resize((90, 40)).save(path)
    return path


def report_of(loom, *arguments):
    return read_report(json.loads(loom(*arguments, "--json", "-").out), "output").needed()


def test_the_spec_keeps_the_picture_that_the_model_sees(loom, file):
    spec = report_of(loom, *SEE, "--image", file).spec
    assert spec.workload.image == encoded(spec.model.vision, file.read_bytes(), "here")
    assert (spec.workload.prompt, spec.workload.prompt_tokens, spec.workload.new_tokens) == (None, None, 0)


def test_a_picture_and_a_question_go_together(loom, file):
    report = report_of(
        loom,
        "predict",
        "lab-3",
        "--model",
        "tiny-llava",
        "--strategy",
        "gpipe",
        "--image",
        file,
        "--prompt",
        "What is it?",
        "--new-tokens",
        3,
    )
    assert report.spec.workload.prompt == "What is it?" and len(report.requests[0].token_s) == 3


def test_without_a_picture_there_is_a_random_one(loom):
    assert report_of(loom, *SEE).spec.workload.image is None


def test_what_is_no_picture_is_refused(loom, tmp_path, file):
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    refused(loom(*SEE, "--image", notes), "notes.txt", "neither PNG nor JPEG")
    refused(loom(*SEE, "--image", tmp_path / "nowhere.png"), "nowhere.png", "No such file")
    refused(
        loom("predict", "lab-3", "--model", "tiny-gpt2", "--strategy", "gpipe", "--image", file),
        "tiny-gpt2 sees no pictures",
    )
    refused(loom(*SEE, "--prompt", "hello"), "tiny-vit sees a picture and reads no text")


def test_a_class_is_shown_when_its_event_arrives():
    found = {"index": 3, "probability": 0.25, "label": ""}
    mark = Mark(0.5, "classified", facts={"request": 1, "classes": [found]})
    assert describe(mark) == "0.500 s request 1: class 3 (25%)"
    found["label"] = "cat"
    assert describe(mark) == "0.500 s request 1: cat (25%)"
