"""Transmitted bytes of every interface, from the kernel's own text."""

from emulator.network.counters import sent_bytes

HEADER = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
"""
TEXT = HEADER + (
    "    lo:     100       1    0    0    0  0     0      0      100       1    0    0    0     0\n"
    "d0-eth0: 7777777      12    1    2    3  4     5      6  8888888      34    0    0    0     0\n"
    "d0-eth10:9999999999    1    0    0    0  0     0      0 12345678901    1    0    0    0    0\n"
)


def test_the_ninth_figure_is_what_was_sent_also_where_a_long_one_touches_the_name() -> None:
    assert sent_bytes(TEXT) == {"lo": 100, "d0-eth0": 8888888, "d0-eth10": 12345678901}


def test_a_node_without_interfaces_has_sent_nothing() -> None:
    assert sent_bytes(HEADER) == {}
