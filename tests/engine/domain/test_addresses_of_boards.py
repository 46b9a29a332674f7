"""Where a board may say that others connect to it, by where its connection to the server came from."""

from __future__ import annotations

import socket

import pytest

from engine.domain.addresses import Origin, own_addresses

OWN = ("127.0.0.1", "192.0.2.1", "fd00::1")
AWAY = Origin("198.51.100.7", OWN)


@pytest.mark.parametrize(
    "said",
    [
        "127.0.0.1",
        "127.8.9.1",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:192.0.2.1",
        "192.0.2.1",
        "fd00:0:0::1",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "localhost",
        "127.1",
        "2130706433",
        "",
    ],
)
def test_a_board_elsewhere_leads_nobody_to_the_server_itself_nor_to_no_machine(said: str) -> None:
    assert AWAY.why_not(said).startswith("which is ")
    assert Origin("", OWN).why_not(said), "nor does one that came from nowhere known"


@pytest.mark.parametrize("said", ["198.51.100.7", "::ffff:198.51.100.7", "10.0.0.9", "fd00::9"])
def test_a_board_says_its_own_address_or_another_in_a_network(said: str) -> None:
    """It may be behind NAT, and have a network of its own for what boards say to each other."""
    assert AWAY.why_not(said) == ""


@pytest.mark.parametrize("came_from", ["127.0.0.1", "::ffff:127.0.0.1", "192.0.2.1", "fd00::1"])
def test_a_board_on_the_servers_machine_says_any_address_of_that(came_from: str) -> None:
    here = Origin(came_from, OWN)
    assert [here.why_not(said) for said in ("127.0.0.1", "192.0.2.1", "::1")] == ["", "", ""]
    assert here.why_not("169.254.169.254")


FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
     +-- 192.0.2.0/24 2 0 2
           |-- 192.0.2.0
              /24 link UNICAST
           |-- 192.0.2.2
              /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
"""


def test_the_machines_own_addresses_are_read_of_the_kernel(tmp_path) -> None:
    (tmp_path / "fib_trie").write_text(FIB_TRIE + FIB_TRIE.replace("Main", "Local"))
    assert own_addresses(tmp_path) == ("127.0.0.1", "192.0.2.2"), "without IPv6"
    (tmp_path / "if_inet6").write_text("fd000000000000000000000000000002 04 40 00 82     eth0\n")
    assert own_addresses(tmp_path) == ("127.0.0.1", "192.0.2.2", "fd00::2")
    for address in own_addresses():
        if ":" not in address:
            with socket.create_server((address, 0)):
                pass
