"""A benchmark notices in every stage that the process of a device has died."""

import json

import pytest

STAGES = ("fork", "load", "connect", "run", "stop")


@pytest.fixture(scope="module")
def ends(tmp_path_factory, in_a_copy):
    """How it ended and how many processes were left, by the stage in which d1 was killed."""
    result = tmp_path_factory.mktemp("killed") / "result.json"
    in_a_copy("killed_devices", "benchmark", result)
    return json.loads(result.read_text())


@pytest.mark.parametrize("stage", STAGES)
def test_a_device_that_is_killed_ends_the_benchmark_with_a_sentence(stage, ends):
    assert ends[stage]["said"] == "d1 of a benchmark ended early: its process was ended by SIGKILL."
    assert ends[stage]["left"] == 0, "whoever waited for it was ended too"


def test_the_same_benchmark_has_a_summary_of_every_device_when_nobody_is_killed(ends):
    assert ends["none"]["said"] == ["done"] * 3
