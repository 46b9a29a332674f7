"""A change of delay or loss is no change of rate: reports are made all the same."""

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.trace import Mark
from engine.reports.fold import fold_links


def test_links_that_got_another_delay_keep_their_rate() -> None:
    devices = [
        DeviceSpec(name=name, flop_per_s=1e9, memory_bytes=1e9, memory_byte_per_s=1e9) for name in "ab"
    ]
    cluster = ClusterSpec(
        name="pair", source="a", devices=tuple(devices), links=(LinkSpec(a="a", b="b", bit_per_s=1e6),)
    )
    marks = [
        Mark(0.1, "link_changed", facts={"link": "a--b", "delay_s": 0.02, "direction": "both"}),
        Mark(0.2, "link_changed", facts={"link": "a--b", "loss_frac": 0.1, "direction": "forward"}),
    ]
    assert fold_links(cluster, [], marks, []) == fold_links(cluster, [], [], [])
