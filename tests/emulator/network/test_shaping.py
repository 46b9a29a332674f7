"""Rates become token buckets, and readings that differ are refused."""

from typing import Any

import pytest

from emulator.network.shaping import Port, Shape, check_reading, piece_limit, tc_lines
from engine.domain.errors import HostError
from engine.domain.token_bucket import bucket_bit_per_s, burst_bytes, frames_per_piece

PORT = Port(1, "d0-eth0", "desk→hub")


def reading(rate_bit_per_s: float, **netem: Any) -> list[dict[str, Any]]:
    bucket = {"kind": "tbf", "dev": "d0-eth0", "options": {"rate": int(rate_bit_per_s / 8), "burst": 1600}}
    return [bucket, {"kind": "netem", "dev": "d0-eth0", "options": netem}] if netem else [bucket]


def test_the_bucket_pays_for_the_headers_of_a_full_frame() -> None:
    assert bucket_bit_per_s(1448e3) == 1514e3


def test_the_bucket_holds_a_piece_and_a_timers_lateness() -> None:
    assert burst_bytes(1e6) == 1600
    assert burst_bytes(100e6) == 1514 + 1500
    assert burst_bytes(1e9) == 19 * 1514 + 15000


def test_a_piece_is_never_larger_than_the_bucket() -> None:
    for rate in (1e5, 1e6, 1e7, 1e8, 1e9, 1e10):
        assert frames_per_piece(rate) * 1514 <= burst_bytes(rate)
    assert piece_limit("d0-eth0", Shape(1e9)) == "link set d0-eth0 gso_max_segs 20"


def test_a_rate_alone_needs_one_line() -> None:
    (line,) = tc_lines("d0-eth0", Shape(1448e3), "change")
    assert line.startswith("qdisc change dev d0-eth0 root handle 1: tbf rate 1514000bit burst 1600 limit ")


def test_impairments_sit_below_the_bucket() -> None:
    _, line = tc_lines("d0-eth0", Shape(1e6, True, delay_s=0.02, jitter_s=0.001, loss_frac=0.015), "add")
    assert line == (
        "qdisc replace dev d0-eth0 parent 1:1 handle 10: "
        "netem limit 100000 delay 20000us 1000us loss 1.500000%"
    )


def test_a_long_delay_is_asked_for_to_the_microsecond() -> None:
    _, line = tc_lines("d0-eth0", Shape(1e6, True, delay_s=2.0, jitter_s=1.0), "add")
    assert " delay 2000000us 1000000us" in line


def test_a_bucket_of_one_frame_is_enough_and_a_smaller_one_is_refused() -> None:
    (bucket,) = reading(1514e3)
    whole = {**bucket, "options": {**bucket["options"], "burst": 1514}}
    check_reading([whole], PORT, Shape(1448e3))
    less = {**bucket, "options": {**bucket["options"], "burst": 1513}}
    with pytest.raises(HostError, match=r"1\.45 Mbit/s is slower than the kernel can shape"):
        check_reading([less], PORT, Shape(1448e3))


def test_a_true_reading_gives_the_payload_rate_in_force() -> None:
    assert check_reading(reading(1514e3), PORT, Shape(1448e3)) == pytest.approx(1448e3, rel=1e-5)


def test_another_rate_is_refused_with_both_figures() -> None:
    with pytest.raises(HostError, match=r"link desk→hub: asked for 1.45 Mbit/s, the kernel set 724 kbit/s"):
        check_reading(reading(757e3), PORT, Shape(1448e3))


def test_another_qdisc_is_refused() -> None:
    other = [{"kind": "fq_codel", "dev": "d0-eth0", "options": {}}]
    with pytest.raises(HostError, match="by tbf, the kernel shapes it with fq_codel"):
        check_reading(other, PORT, Shape(1e6))


def test_the_bucket_of_another_interface_does_not_count() -> None:
    other = [{**reading(1514e3)[0], "dev": "d0-eth1"}]
    with pytest.raises(HostError, match="shapes it with nothing"):
        check_reading(other, PORT, Shape(1448e3))


def test_a_missing_delay_is_refused() -> None:
    shape = Shape(1448e3, True, delay_s=0.02)
    with pytest.raises(HostError, match="asked for netem"):
        check_reading(reading(1514e3), PORT, shape)
    with pytest.raises(HostError, match=r"asked for delay 0.02s, the kernel has 0.001"):
        check_reading(reading(1514e3, delay={"delay": 0.001, "jitter": 0}), PORT, shape)
    check_reading(reading(1514e3, delay={"delay": 0.02, "jitter": 0}), PORT, shape)
