"""Every preset says what its rates are."""

import re

import pytest

import topologies
from engine.domain.cluster import DeviceSpec

RATES = {"name": "a", "flop_per_s": 1e9, "memory_bytes": 1e9, "memory_byte_per_s": 1e9}


@pytest.mark.parametrize("preset", topologies.presets(), ids=lambda preset: preset.name)
def test_every_preset_states_what_its_rates_are(preset):
    assert preset.basis is not None


@pytest.mark.parametrize("preset", topologies.presets(), ids=lambda preset: preset.name)
def test_a_price_says_where_and_when_it_was_published_and_without_one_nothing_is_said(preset):
    assert bool(preset.price_source) == (preset.price_usd is not None)
    assert preset.price_usd is None or re.search(r"\b20[12]\d\b", preset.price_source)


def test_boards_of_one_chip_have_its_published_rates():
    presets = {preset.name: preset for preset in topologies.presets()}
    large = presets["raspberry-pi-5-16"]
    assert large.format_rates == presets["raspberry-pi-5"].format_rates
    assert large.memory_bytes == 2 * presets["raspberry-pi-5"].memory_bytes


def test_a_data_sheet_states_the_efficiency_that_it_assumes():
    device = DeviceSpec(**RATES, basis="data sheet", assumed_efficiency=0.4)
    assert device.basis_in_words == "data sheet, 40% of its peak assumed"


@pytest.mark.parametrize(
    "fields",
    [
        {"basis": "data sheet"},
        {"assumed_efficiency": 0.4},
        {"basis": "calibrated", "assumed_efficiency": 0.4},
    ],
)
def test_an_efficiency_without_a_data_sheet_is_refused_and_the_reverse(fields):
    with pytest.raises(ValueError, match="basis and assumed_efficiency disagree"):
        DeviceSpec(**RATES, **fields)
