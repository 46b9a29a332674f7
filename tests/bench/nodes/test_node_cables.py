"""The prediction of `./loom bench nodes` knows of the cables what their shape lets through at once."""

import pytest

from bench.nodes.cases import Case, figures_of, request_of, shaped
from engine.domain.spec import RunSpec
from engine.domain.token_bucket import burst_payload_bytes
from engine.models.catalogue import resolve
from engine.program.frames import FRAME_HEADER_BYTES
from engine.runs.predict import predict
from tests.support.small_cases import star

RATE = 1e8


def test_a_short_message_passes_a_cable_at_once_and_of_a_long_one_the_rest_takes_its_time():
    """A token passes the two boards' cables twice, as a row of hidden numbers, which a bucket holds."""
    model, _ = resolve("tinyllama-42m", "random")
    request = request_of(Case(("a", "b"), RATE, model.name, "gpipe"), star((1e9,) * 2))
    spec = RunSpec.model_validate(request | {"model": model, "weights": {}, "dilation": 1.0})
    ideal, cables = figures_of(predict(spec)), figures_of(shaped(spec))
    row_bytes = FRAME_HEADER_BYTES + 4 * model.hidden_size
    assert row_bytes < burst_payload_bytes(RATE) < 64 * row_bytes
    assert ideal.later_s - cables.later_s == pytest.approx(2 * 8 * row_bytes / RATE, rel=0.02)
    at_once_s = 8 * (burst_payload_bytes(RATE) + row_bytes) / RATE
    assert ideal.first_s - cables.first_s == pytest.approx(at_once_s, rel=0.02)
