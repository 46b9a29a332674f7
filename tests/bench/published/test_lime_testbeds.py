"""LIME on the testbeds of its paper (arXiv 2512.21835, Table IV, section V-C): a plan wherever a pipeline has
one, as fast as EdgeShard, faster than the pipeline whose stages stream for themselves.
"""

import pytest

from bench.published.lime import token_s
from bench.published.lime_testbeds import ENVIRONMENTS, SETTINGS

ALL = {testbed.name: testbed for testbed in (*ENVIRONMENTS, *SETTINGS)}
CASES = [(name, 2e8, "sporadic") for name in ALL] + [("E2", 1e8, "sporadic"), ("E3", 2e8, "bursty")]


@pytest.mark.parametrize(("name", "bit_per_s", "pattern"), CASES)
def test_it_finishes_and_is_no_slower_than_a_pipeline(name, bit_per_s, pattern):
    """128 tokens in and 1024 out."""
    ours_s = token_s(ALL[name], bit_per_s, pattern, "lime")
    assert ours_s is not None
    for rival in ("gpipe", "edgeshard"):
        theirs_s = token_s(ALL[name], bit_per_s, pattern, rival)
        assert theirs_s is None or ours_s <= 1.01 * theirs_s


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_in_every_setting_it_beats_the_pipeline_whose_stages_stream_for_themselves(setting):
    ours_s = token_s(setting, 2e8, "sporadic", "lime")
    assert 1.1 * ours_s < token_s(setting, 2e8, "sporadic", "pipeline_offload")


def test_pipelines_have_too_little_memory_in_setting_3():
    for rival in ("gpipe", "edgeshard"):
        assert token_s(SETTINGS[2], 2e8, "sporadic", rival) is None
