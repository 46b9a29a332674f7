"""A run notices in every stage that the process of a device has died."""

import json

import pytest

STAGES = ("fork", "load", "connect", "run", "stop")


@pytest.fixture(scope="module")
def ends(tmp_path_factory, in_a_copy):
    """How it ended and how many processes were left, by the stage in which d1 was killed."""
    result = tmp_path_factory.mktemp("killed") / "result.json"
    in_a_copy("killed_devices", "run", result)
    return json.loads(result.read_text())


@pytest.mark.parametrize("stage", STAGES)
def test_a_device_that_is_killed_ends_the_run_with_a_sentence(stage, ends):
    outcome = ends[stage]["said"]
    assert (outcome["kind"], outcome["device"]) == ("peer_lost", "d1")
    assert "its process was ended by SIGKILL" in outcome["sentence"]
    assert ends[stage]["left"] == 0


def test_the_same_run_finishes_when_nobody_is_killed(ends):
    assert ends["none"]["said"]["kind"] == "finished"
