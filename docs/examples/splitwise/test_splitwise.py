"""Splitwise: the contract, and prompts that are computed while others get tokens, in numbers by hand."""

import pytest
from splitwise import Splitwise

import edgeloom
from edgeloom.cluster import DeviceSpec, LinkSpec, star
from edgeloom.testing import check_strategy

DESK = DeviceSpec(name="desk", flop_per_s=5e11, memory_bytes=16e9, memory_byte_per_s=1e12)
PROMPTS = DeviceSpec(name="prompts", flop_per_s=2e12, memory_bytes=16e9, memory_byte_per_s=5e10)
TOKENS = DeviceSpec(name="tokens", flop_per_s=1e12, memory_bytes=16e9, memory_byte_per_s=2e12)
LAN = LinkSpec(a="desk", b="prompts", bit_per_s=1e10, delay_s=1e-5)
CLUSTER = star((DESK, PROMPTS, TOKENS), LAN)
ASKED = {"weights": "random", "prompt_tokens": 128, "new_tokens": 32}


def test_it_keeps_the_contract():
    check_strategy(Splitwise)


def test_each_phase_has_the_machine_that_suits_it():
    layout = edgeloom.predict(CLUSTER, "gpt2", Splitwise(), **ASKED).plan.layout
    assert (layout.prompt_device, layout.token_device) == (1, 2)


def test_prompts_wait_for_no_tokens():
    """All at once: a prompt after the other, as if nobody decoded, while the other machine does."""
    at_once = {"pattern": "poisson", "rate_per_s": 1e6, "requests": 4, "max_batch": 4}
    found = edgeloom.predict(CLUSTER, "gpt2", Splitwise(), scheduler="disaggregated", **at_once, **ASKED)
    first_s = sorted(request.ttft_s for request in found.requests)
    for number, ttft_s in enumerate(first_s):
        assert ttft_s == pytest.approx((number + 1) * first_s[0], rel=0.05)
    assert found.requests[0].token_s[1] < first_s[-1]


def test_tokens_are_those_of_transformers_while_both_machines_work():
    report = edgeloom.run(
        "lab-3",
        "demo-lm",
        Splitwise(),
        world="loopback",
        prompt_tokens=24,
        new_tokens=8,
        pattern="poisson",
        rate_per_s=200,
        requests=6,
        max_batch=4,
        scheduler="disaggregated",
    )
    assert report.correctness.ok, report.correctness.why
