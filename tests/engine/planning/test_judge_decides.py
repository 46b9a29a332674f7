"""The judge decides which plan is best, whatever a method's own estimate says."""

import pytest

from engine.planning.judge import Judge
from tests.support.small_cases import GPT2, plan_of, spec_of, star


@pytest.mark.parametrize("name", ["voltage", "megatron", "deepspeed", "galaxy", "gpipe", "edgeshard"])
def test_a_judge_who_likes_many_devices_gets_them_and_one_who_likes_few_gets_few(name, monkeypatch):
    burst = {"requests": 4, "pattern": "bursty"} if name in ("gpipe", "edgeshard") else {}
    spec = spec_of(name, GPT2, star([4e10, 1e10, 1e10]), rows=40, planner="best", **burst)
    sizes = []
    for sign in (1, -1):

        def seconds(judge, make, sign=sign):
            return sign * len({work.device for work in make(judge.model).work}) + 10.0

        monkeypatch.setattr(Judge, "seconds", seconds)
        sizes.append(len({work.device for work in plan_of(spec).work}))
    assert sizes[0] < sizes[1]
