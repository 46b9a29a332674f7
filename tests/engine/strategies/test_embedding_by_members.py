"""Tokens embedded on every member: what devices hold, what the source sends, when auto chooses it."""

import pytest

from bench.fuzz.check import check
from engine.domain.errors import PlanError
from engine.models import catalogue
from engine.runs.predict import prepare, simulate
from engine.strategies.shared.embedding import check_choice
from tests.support.small_cases import GPT2, LLAMA, plan_of, spec_of, star

HEADER_BYTES = 112


def members(model, devices=3, choice="members", **more):
    return spec_of("megatron", model, star([1e10] * devices), embedding=choice, **more)


def holders(plan):
    return sorted(item.device for item in plan.holdings if item.slice.part == "embed")


def input_bytes(spec):
    trace, _ = simulate(prepare(spec))
    return [item.bytes for item in trace if getattr(item, "kind", "") == "send" and "input" in item.name]


def test_every_member_holds_the_table_and_the_source_sends_ids():
    """By hand: a header, and 8 bytes for each id, of the prompt and then of one token, to two peers."""
    spec = members(LLAMA)
    assert holders(plan_of(spec)) == [0, 1, 2]
    assert holders(plan_of(members(LLAMA, choice="source"))) == [0]
    rows, tokens = spec.workload.prompt_tokens, spec.workload.new_tokens
    ids = [HEADER_BYTES + 8 * rows] * 2 + [HEADER_BYTES + 8] * 2 * (tokens - 1)
    assert input_bytes(spec) == ids
    hidden = [size - HEADER_BYTES for size in input_bytes(members(LLAMA, choice="source"))]
    assert hidden == [4 * LLAMA.hidden_size * (size - HEADER_BYTES) // 8 for size in ids]


@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.name)
@pytest.mark.parametrize("pattern", ["sporadic", "bursty"])
def test_tokens_and_logits_are_those_of_transformers(model, pattern):
    verdict = check(members(model, requests=2, pattern=pattern))
    assert verdict.end == "equal", verdict.sentence


def embeds(spec):
    return plan_of(spec).layout.members_embed


def test_auto_weighs_the_rate_and_the_memory():
    """By hand: a row has 4 bytes for each number, an id 8. Members embed where the difference takes 0.1 ms,
    the least cost of a hop, and where the table fits beside all else.
    """
    spec = members(LLAMA, devices=2, choice="auto")

    def at(bit_per_s, **limits):
        links = [link.model_copy(update={"bit_per_s": bit_per_s}) for link in spec.cluster.links]
        first, second = spec.cluster.devices
        devices = (first, second.model_copy(update=limits))
        changed = {"links": tuple(links), "devices": devices}
        return spec.model_copy(update={"cluster": spec.cluster.model_copy(update=changed)})

    row_bytes = 4 * LLAMA.hidden_size
    limit = 8 * (row_bytes - 8) / 100e-6
    assert embeds(at(0.9 * limit)) and not embeds(at(1.1 * limit))
    short = next(size for size in range(1_000, 10_000_000, 1_000) if fits(at(1e6, memory_bytes=float(size))))
    assert not embeds(at(1e6, memory_bytes=float(short)))


def fits(spec):
    try:
        plan_of(spec)
    except PlanError:
        return False
    return True


def test_members_cannot_embed_a_picture():
    model, _ = catalogue.resolve("tiny-vit", "random")
    check_choice("auto", model)
    with pytest.raises(PlanError, match="pictures"):
        check_choice("members", model)
