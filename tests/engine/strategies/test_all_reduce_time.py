"""Which all-reduce is chosen: few bytes for many rows, one hop for few."""

import pytest

from engine.strategies.shared.all_reduce_time import all_reduce_s, chosen_all_reduce, cluster_all_reduce_s
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


@pytest.mark.parametrize(
    ("members", "star_s", "ring_s", "tree_s", "direct_s"),
    [
        # 1000 bytes over 8 Mbit/s are 1 ms, and a hop is 10 ms
        (1, 0, 0, 0, 0),
        (2, 22e-3, 2 * 10.5e-3, 2 * 11e-3, 11e-3),
        (4, 26e-3, 6 * 10.25e-3, 4 * 11e-3, 13e-3),
        (5, 28e-3, 8 * 10.2e-3, 6 * 11e-3, 14e-3),
    ],
)
def test_every_algorithm_takes_its_steps(members, star_s, ring_s, tree_s, direct_s):
    found = [all_reduce_s(how, members, 1000, 8e6, 10e-3) for how in ("star", "ring", "tree", "direct")]
    assert found == pytest.approx([star_s, ring_s, tree_s, direct_s])


def test_the_worst_way_from_or_to_the_first_member_counts():
    cluster = equal(3, 1e8)
    slow_back = cluster.links[2].model_copy(update={"bit_per_s": 1e6, "reverse_bit_per_s": 1e8})
    links = (*cluster.links[:2], slow_back)  # d2 sends at 1 Mbit/s and receives at 100
    late = cluster.devices[1].model_copy(update={"message_overhead_s": 5e-3})
    devices = (cluster.devices[0], late, cluster.devices[2])
    cluster = cluster.model_copy(update={"links": links, "devices": devices})
    got_s = cluster_all_reduce_s(cluster, (0, 1, 2), 1000, "direct")
    assert got_s == pytest.approx(2 * 8000 / 1e6 + 5e-3)
    only_sends = cluster_all_reduce_s(cluster, (1, 0), 1000, "direct")
    assert only_sends == cluster_all_reduce_s(cluster, (0, 1), 1000, "direct") == pytest.approx(8e-5 + 5e-3)


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
