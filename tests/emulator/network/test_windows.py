"""First windows hold what a path holds, and routes carry them."""

import math

from hypothesis import given
from hypothesis import strategies as st

from emulator.network.layout import network_layout
from emulator.network.windows import (
    DEFAULT_FRAMES,
    RECEIVE_BUFFER_BYTES,
    TCP_RMEM,
    first_window_frames,
    tcp_wmem,
)
from tests.support.small_clusters import cluster, link, star


def test_new_connections_offer_what_a_gigabit_carries_in_130_ms() -> None:
    assert 0.13 * 1e9 / 8 <= RECEIVE_BUFFER_BYTES / 2 < 0.14 * 1e9 / 8
    assert TCP_RMEM == "4096 33554432 67108864"  # at least, at first, at most: 32 MiB and twice that


def test_a_path_without_delay_keeps_the_kernels_window() -> None:
    assert first_window_frames(star(2), 0, 1) is None
    lines = [line for batch in network_layout(star(2)).batches.values() for line in batch]
    assert not any("initcwnd" in line for line in lines)


def test_a_window_holds_a_round_trip_and_the_send_buffer() -> None:
    # 20 ms there and 20 ms back at 100 Mbit/s are 500 kB, and 128 KiB of send buffer: 435.8 frames of 1448
    assert first_window_frames(star(2, 100e6, delay_s=0.01), 0, 1) == 436


def test_the_slowest_link_of_the_way_there_counts_and_delay_of_both_ways() -> None:
    drawn = cluster(
        "a b",
        "s",
        link("a", "s", 80e6, delay_s=0.02, reverse_delay_s=0.01),
        link("s", "b", 8e6, reverse_bit_per_s=16e6),
    )
    buffer = 128 * 1024
    assert first_window_frames(drawn, 0, 1) == math.ceil((0.03 * 1e6 + buffer) / 1448)
    assert first_window_frames(drawn, 1, 0) == math.ceil((0.03 * 2e6 + buffer) / 1448)


def test_a_lossy_path_begins_with_the_window_that_its_losses_leave() -> None:
    drawn = star(2, 100e6, delay_s=0.01, loss_frac=0.001)
    # 1 - 0.999² = 0.1999 % end to end; sqrt(1.5 / 0.001999) = 27.4
    assert first_window_frames(drawn, 0, 1) == 28


@given(st.floats(1e-5, 0.5), st.floats(1e-3, 0.1), st.floats(1e6, 1e9))
def test_windows_shrink_with_loss_down_to_the_kernels_own(loss: float, delay_s: float, rate: float) -> None:
    windows = [
        first_window_frames(star(2, rate, delay_s=delay_s, loss_frac=frac), 0, 1)
        for frac in (0.0, loss / 2, loss)
    ]
    assert all(window is not None and window >= DEFAULT_FRAMES for window in windows)
    assert windows == sorted(windows, reverse=True)


def test_every_route_between_devices_says_its_window() -> None:
    drawn = cluster("a b c", "", link("a", "b", 10e6, delay_s=0.01), link("b", "c", 10e6))
    layout = network_layout(drawn)
    ranks = {node.address: rank for rank, node in enumerate(layout.nodes)}
    found = {}
    for rank, node in enumerate(layout.nodes):
        for end in node.interfaces:
            for line in layout.batches[end.name]:
                words = line.split()
                if words[0] == "route":
                    window = int(words[words.index("initcwnd") + 1]) if "initcwnd" in words else None
                    found[rank, ranks[words[2].removesuffix("/32")]] = window
    assert found == {
        (src, dst): first_window_frames(drawn, src, dst) for src in range(3) for dst in range(3) if src != dst
    }
    assert found[1, 2] is None
    assert found[0, 2] == found[0, 1]


def test_a_receiver_offers_what_a_gigabit_holds_in_a_tenth_of_a_second() -> None:
    window = first_window_frames(star(2, 1e9, delay_s=0.025), 0, 1)
    assert window is not None
    assert window * 1448 <= RECEIVE_BUFFER_BYTES / 2


def test_send_buffers_hold_a_round_trip_of_the_longest_path_without_any_right() -> None:
    drawn = cluster(
        "a b c", "s", link("a", "s", 80e6, delay_s=0.01), link("b", "s", 80e6), link("c", "s", 8e6)
    )
    size = 2 * (128 * 1024 + round(0.02 * 80e6 / 8))  # to b; to c it is a tenth
    assert tcp_wmem(drawn, 0) == f"4096 {size} {size}"
    assert tcp_wmem(star(2), 0) is None
