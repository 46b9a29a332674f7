"""Which all-reduce is chosen: few bytes for many rows, one hop for few."""

import pytest

from engine.strategies.shared.all_reduce_time import chosen_all_reduce, cluster_all_reduce_s
from tests.support.small_cases import GPT2, plan_of, spec_of, star


def equal(devices, bit_per_s):
    cluster = star([1e10] * devices)
    links = tuple(link.model_copy(update={"bit_per_s": bit_per_s}) for link in cluster.links)
    return cluster.model_copy(update={"links": links})


ROW, PROMPT = 3072, 128 * 3072  # bytes of hidden states 768 wide


@pytest.mark.parametrize(
    ("devices", "mbit_per_s", "size_bytes", "chosen"),
    [
        # a row over 4 devices: direct 3·24.6 kbit + 1 hop of 0.1 ms, ring 6 · (6.1 kbit + 0.1 ms)
        (4, 1000, ROW, "direct"),  # 0.17 ms against 0.64
        (4, 100, ROW, "direct"),  # 0.84 against 0.97
        (4, 20, ROW, "ring"),  # 3.8 against 2.4
        (2, 20, ROW, "direct"),  # the same bytes in one hop
        (2, 20, PROMPT, "direct"),
        (4, 1000, PROMPT, "ring"),
    ],
)
def test_bytes_and_hops_decide(devices, mbit_per_s, size_bytes, chosen):
    cluster = equal(devices, mbit_per_s * 1e6)
    assert chosen_all_reduce(cluster, cluster.workers, size_bytes, "auto") == chosen
    assert chosen_all_reduce(cluster, cluster.workers, size_bytes, "tree") == "tree"


def test_a_direct_exchange_takes_the_bytes_of_all_others_and_one_delay():
    cluster = equal(4, 1e8)
    delay_s = cluster.delay_s(0, 1) + cluster.devices[0].message_overhead_s
    got_s = cluster_all_reduce_s(cluster, cluster.workers, 1000, "direct")
    assert got_s == pytest.approx(3 * 8000 / 1e8 + delay_s)


def test_prompts_and_tokens_have_an_algorithm_each():
    layout = plan_of(spec_of("megatron", GPT2, equal(4, 1e7), rows=60)).layout
    assert (layout.all_reduce, layout.decode_all_reduce) == ("ring", "direct")
    forced = plan_of(spec_of("megatron", GPT2, star([1e10] * 4), rows=60, all_reduce="star")).layout
    assert (forced.all_reduce, forced.decode_all_reduce) == ("star", "star")
