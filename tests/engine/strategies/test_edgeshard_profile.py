"""What EdgeShard's planner knows of a cluster, against sums worked out by hand.

The model has hidden size 32, 4 heads of 8, 64 feed-forward columns and 50 words. A prompt of 11 rows is
followed by 4 tokens, so three of them are fed back, after 12 rows on average. Devices compute FLOPs / rate.
"""

import pytest

from engine.strategies.edgeshard.plan import profile_of
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.pipeline import ends_placement
from engine.strategies.shared.stages import rooms_of
from tests.support.small_cases import BERT, GPT2, spec_of, star

RATES = (1e10, 2e10, 5e9)
DELAY_S, OVERHEAD_S = 1e-3, 5e-4

BLOCK_OF_PROMPT = (
    8 * 11 * 32**2  # Q, K, V and output: four products of 2 · 11 · 32 · 32
    + 4 * 11 * 11 * 32  # scores and values of all heads
    + 4 * 11 * 32 * 64  # two feed-forward products
    + 4 * 11 * 32  # two norms, two additions
    + 4 * 11 * 11  # softmax
    + 11 * 64  # activation
)
BLOCK_OF_TOKEN = 8 * 32**2 + 4 * 13 * 32 + 4 * 32 * 64 + 4 * 32 + 4 * 13 + 64
EMBED = 2 * 11 * 32  # look up, add positions
HEAD = 32 + 2 * 32 * 50  # norm of one row, logits
PROMPT_S, TOKEN_S = 8 * (112 + 11 * 32 * 4) / 1e8, 8 * (112 + 32 * 4) / 1e8
"""A frame header and hidden states of 4-byte numbers, at 100 Mbit/s."""
MESSAGE_S = OVERHEAD_S + 2 * DELAY_S  # what every message costs besides its bytes: two links to the peer


def profile(model=GPT2, new_tokens=4, terminal=False):
    cluster = star(
        RATES, terminal=terminal, compute_model="flops", op_overhead_s=0.0, message_overhead_s=OVERHEAD_S
    )
    links = tuple(link.model_copy(update={"delay_s": DELAY_S}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    demand = demand_of(model, spec_of("edgeshard", model, cluster, new_tokens=new_tokens).workload, False)
    rooms = rooms_of(cluster, model, demand, ends_placement("edgeshard", cluster, model))
    return profile_of(cluster, model, demand, rooms)


def test_a_layer_takes_the_prompt_once_and_every_further_token():
    flops = BLOCK_OF_PROMPT + 3 * BLOCK_OF_TOKEN
    for times, rate in zip(profile().layer_s, RATES, strict=True):
        assert times[1:] == pytest.approx([flops / rate] * 2)
    assert profile().layer_s[1] == pytest.approx([flops / 2e10] * 3)


def test_the_source_embeds_and_computes_every_token_s_logits_beside_its_first_layer():
    first, second, _ = profile().layer_s[0]
    assert first - second == pytest.approx((EMBED + 4 * HEAD) / 1e10)


def test_a_hop_carries_the_prompt_and_every_token_that_is_fed_back():
    expected_s = (PROMPT_S + MESSAGE_S) + 3 * (TOKEN_S + MESSAGE_S)
    for between in profile().hop_s:
        for src, row in enumerate(between):
            assert row == pytest.approx([0.0 if src == dst else expected_s for dst in range(3)])


def test_without_further_tokens_only_the_prompt_travels():
    assert profile(new_tokens=1).hop_s[0][0][1] == pytest.approx(PROMPT_S + MESSAGE_S)


def test_the_result_of_every_token_is_one_row_and_an_encoder_s_all_rows():
    assert profile().return_s == pytest.approx([0.0, *[4 * (TOKEN_S + MESSAGE_S)] * 2])
    assert profile(BERT, new_tokens=0).return_s == pytest.approx([0.0, *[PROMPT_S + MESSAGE_S] * 2])


def test_the_first_layer_must_be_on_a_source_that_computes():
    assert profile().enter_s == [0.0, float("inf"), float("inf")]


def test_a_terminal_sends_what_it_embedded_to_any_worker_and_computes_no_layer():
    found = profile(terminal=True)
    assert found.enter_s == pytest.approx([(PROMPT_S + MESSAGE_S) + 3 * (TOKEN_S + MESSAGE_S)] * 3)
    assert found.layer_s[0] == pytest.approx([(BLOCK_OF_PROMPT + 3 * BLOCK_OF_TOKEN) / 1e10] * 3)
