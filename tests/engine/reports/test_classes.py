"""What a classifier answered, from its logits to the report."""

import json
from types import SimpleNamespace

import pytest
import torch

from engine.domain.spec import WeightsRef
from engine.domain.trace import Mark
from engine.models import catalogue
from engine.models.inputs.text import label_of
from engine.reports.fold import fold_requests
from engine.worlds.common.source import RealSource


def marks_of(logits):
    """Of a source whose classifier gave `logits`."""
    marks = []
    device = SimpleNamespace(
        model=catalogue.resolve("tiny-vit")[0],
        now_s=1.0,
        mark=lambda name, **facts: marks.append(Mark(1.0, name, "d0", facts)),
    )
    step = SimpleNamespace(requests=tuple(range(len(logits))))
    RealSource(device).hidden(step, torch.tensor(logits))
    return marks


def test_the_likeliest_classes_come_first_with_their_probabilities():
    (mark,) = marks_of([[0.0, 3.0, 1.0, 2.0, 0.0, 0.0, -1.0]])
    classes = mark.facts["classes"]
    assert [one["index"] for one in classes][:3] == [1, 3, 2] and len(classes) == 5
    expected = torch.tensor([0.0, 3.0, 1.0, 2.0, 0.0, 0.0, -1.0]).softmax(0)[1]
    assert classes[0]["probability"] == pytest.approx(float(expected))
    assert json.loads(json.dumps(mark.facts)) == mark.facts


def test_a_request_reports_its_classes_and_names_the_best():
    marks = [Mark(0.0, "request_arrived", "d0", {"request": index}) for index in (0, 1)]
    marks += marks_of([[0.0, 5.0, 1.0], [4.0, 0.0, 0.0]])
    marks[2].facts["classes"][0]["label"] = "tabby cat"
    requests, _ = fold_requests(marks)
    assert [request.classes[0].index for request in requests] == [1, 0]
    assert requests[0].text == "tabby cat (98%)" and requests[1].text == "class 0 (96%)"
    assert requests[0].output_tokens == ()


def test_labels_are_those_beside_the_weights(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"id2label": {"0": "tench", "1": "goldfish"}}))
    weights = WeightsRef(kind="directory", directory=str(tmp_path))
    assert (label_of(weights, 1), label_of(weights, 7)) == ("goldfish", "")
    assert label_of(WeightsRef(), 1) == ""
