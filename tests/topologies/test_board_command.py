"""A row of somebody's own board beside the preset and published figures, and the ten lines that are sent."""

import argparse
import tomllib

import pytest

from engine.domain.cluster import DeviceSpec
from engine.domain.errors import SpecError
from topologies.board_command import add_arguments, half_rows, read_row, run, ten_lines
from topologies.presets import preset
from topologies.published import published_rates

CALIBRATED = DeviceSpec(
    name="this-machine",
    flop_per_s=17.3e9,
    memory_bytes=8e9,
    memory_byte_per_s=4.1e9,
    disk_byte_per_s=41e6,
    message_overhead_s=61e-6,
    op_overhead_s=12e-6,
    efficiencies=[
        {"rows": rows, "width": width, "frac": frac, "basis": "measured"}
        for width in (32, 1024)
        for rows, frac in ((1, 0.2), (2, 0.4), (64, 1.0))
    ],
    basis="calibrated",
    source="measured with loom calibrate on 2026-11-24, one thread, float32",
)


def shown(capsys, *words: str) -> str:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert run(parser.parse_args(words)) == 0
    return capsys.readouterr().out


def test_ten_lines_have_the_names_of_a_preset_and_are_read_back(tmp_path):
    text = ten_lines(CALIBRATED)
    assert len(text.splitlines()) == 10
    assert set(tomllib.loads(text)) <= set(DeviceSpec.model_fields)
    file = tmp_path / "board.toml"
    file.write_text(text, encoding="utf-8")
    row = read_row(file, "raspberry-pi-4")
    assert row.name == "raspberry-pi-4"
    for name in ("flop_per_s", "memory_byte_per_s", "message_overhead_s", "source"):
        assert getattr(row, name) == getattr(CALIBRATED, name)
    assert row.half_rows == half_rows(CALIBRATED) == pytest.approx(2 * (1 / 0.4 - 1), abs=0.1)


def test_a_device_table_as_calibrate_prints_it_is_read_as_well(tmp_path):
    file = tmp_path / "board.toml"
    file.write_text("[[device]]\n" + ten_lines(CALIBRATED), encoding="utf-8")
    assert read_row(file, "a").flop_per_s == CALIBRATED.flop_per_s


def test_the_row_stands_beside_the_preset_and_every_published_rate(tmp_path, capsys):
    row, sent = tmp_path / "row.toml", tmp_path / "sent.toml"
    row.write_text(ten_lines(CALIBRATED), encoding="utf-8")
    text = shown(capsys, "raspberry-pi-4", "--row", str(row), "--send", str(sent))
    assert "17.3 GFLOP/s" in text and "16 GFLOP/s" in text
    assert f"{17.3e9 / preset('raspberry-pi-4').flop_per_s:.2f}" in text
    for rate in published_rates():
        if rate.board == "raspberry-pi-4" and rate.nodes == 1:
            assert f"{rate.decode_tokens_per_s:.3g}" in text
    assert read_row(sent, "a") == read_row(row, "a")
    assert 'name = "raspberry-pi-4"' in sent.read_text(encoding="utf-8")


def test_a_preset_without_published_rates_says_so(capsys):
    assert "Nobody has published" in shown(capsys, "beaglebone-black")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "is neither a calibration nor ten lines"),
        ("[[device]]\n[[device]]\n", "expected one device, got 2"),
        ('name = "a"\n', "flop_per_s"),
        ("{}", "profile"),
    ],
)
def test_a_file_that_is_no_row_is_refused_by_name(tmp_path, text, said):
    file = tmp_path / "row.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=said):
        read_row(file, "a")


def test_sending_needs_a_row(capsys):
    with pytest.raises(SpecError, match="--send writes the row of --row"):
        shown(capsys, "raspberry-pi-4", "--send", "x")
