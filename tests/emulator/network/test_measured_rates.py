"""Which measured rates of links are kept. How a link is measured is in test_measure.py."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from emulator.network.measure import LinkTransfer
from emulator.network.measured_rates import MeasuredRates

FORWARD = (3, True)


class Link:
    """A link whose rate is `asked` wall bit/s; while it is measured, `meanwhile` happens to that."""

    def __init__(self, asked: float | None, meanwhile: float | None):
        self.asked, self.meanwhile = asked, meanwhile

    def transfer(self, link: int, forward: bool) -> LinkTransfer | None:
        return None if self.asked is None else LinkTransfer(link, forward, 1, 2, "10.0.0.1", self.asked)

    def measured(self, transfer: LinkTransfer, sent_bytes: object) -> float:
        self.asked = self.meanwhile
        return 0.95 * transfer.bit_per_s


@pytest.fixture
def rates() -> Iterator[MeasuredRates]:
    made = MeasuredRates(dilation=4.0)
    yield made
    made.close()


def probe(rates: MeasuredRates, link: Link) -> None:
    with patch("emulator.network.measured_rates.measure_busy", link.measured):
        rates.probe([FORWARD], link.transfer, lambda link, forward: 0)
        rates.close()


def test_a_measured_rate_is_kept_in_virtual_time(rates: MeasuredRates) -> None:
    probe(rates, Link(1e6, meanwhile=1e6))
    assert rates.bit_per_s == {FORWARD: pytest.approx(4 * 0.95e6)}
    assert rates.probe_ends == {FORWARD: 2}


@pytest.mark.parametrize("meanwhile", [2e6, None], ids=["another rate", "down"])
def test_a_rate_of_a_link_that_was_changed_meanwhile_is_not_kept(
    rates: MeasuredRates, meanwhile: float | None
) -> None:
    probe(rates, Link(1e6, meanwhile=meanwhile))
    assert rates.bit_per_s == {}
    assert rates.probe_ends == {FORWARD: 2}, "the probe is over all the same"


def test_a_link_that_cannot_be_measured_is_not_probed(rates: MeasuredRates) -> None:
    probe(rates, Link(None, meanwhile=None))
    assert (rates.bit_per_s, rates.probe_ends) == ({}, {})
