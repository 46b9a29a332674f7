"""What a board says of itself comes from where Linux has it, and what Linux does not show is left out."""

from pathlib import Path

import pytest

from emulator.node import machine

THERMAL, CPU = "class/thermal/thermal_zone{}/temp", "devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"


def shown(system: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (system / name).parent.mkdir(parents=True)
        (system / name).write_text(text)
    return system


@pytest.mark.parametrize(
    ("texts", "celsius"),
    [
        ((), None),
        (("47774\n",), 47.774),
        (("41000\n", "52500\n", "39000\n"), 52.5),
        (("", "n/a\n", "-274000\n", "4294967295\n", "30000\n"), 30.0),
    ],
)
def test_the_temperature_is_that_of_the_hottest_sensor_that_can_be_read(tmp_path, texts, celsius) -> None:
    system = shown(tmp_path, {THERMAL.format(index): text for index, text in enumerate(texts)})
    assert machine.temperature_celsius(system) == celsius


def test_the_clock_rate_is_that_of_the_fastest_core(tmp_path) -> None:
    assert machine.frequency_hz(tmp_path) is None
    system = shown(tmp_path, {CPU.format(0): "600000\n", CPU.format(1): "1500000\n"})
    assert machine.frequency_hz(system) == 1.5e9


def test_a_board_can_say_both_of_this_machine() -> None:
    assert machine.hello().cores >= 1
    assert machine.beat("x" * 1000).doing == "x" * 200
