"""Files of a link's rate in every format: what they hold in all, and what is refused with its line."""

import json
import math
from random import Random

import pytest

from engine.domain.errors import SpecError
from engine.recorded.rates import LEAST_BIT_PER_S, PACKET_BYTES, RateOptions, parse_rates
from engine.recorded.scenarios import parse_file, read_scenario

UCC = (
    "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,"
    "DL_bitrate,UL_bitrate,State\n"
    "2020.02.13_13.03.24,-8.4,51.8,0,A,11,5G,-90,-11,12.0,13,-,5178,194,D\n"
    "2020.02.13_13.03.25,-8.4,51.8,0,A,11,5G,-90,-11,12.0,13,-,-,130,D\n"
    "2020.02.13_13.03.27,-8.4,51.8,0,A,11,5G,-90,-11,12.0,13,-,6990,0,D\n"
)
LUMOS = (
    "run_num,seq_num,nrStatus,Throughput,mobility_mode\n"
    "1,1,CONNECTED,250.5,walking\n1,2,CONNECTED,100,walking\n2,1,NONE,3,driving\n"
)
FCC = (
    "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec\n"
    "77,2016-06-01 00:00:05,a,b,1,2,250000\n77,2016-06-01 00:00:05,c,d,1,2,125000\n"
    "78,2016-06-01 00:00:00,a,b,1,2,500\n"
)
HSDPA = (
    "1289406399 549692 59.851754 -10.781778 248069 1008\n"
    "1289406400 550772 59.851864 -10.781833 191698 1080\n"
    "1289406401 551773 59.851964 -10.781901 280579 1001\n"
)


def rates(text, **options):
    return parse_rates(text, "x", RateOptions(**options))


def total_bytes(found):
    lengths = (found.until(index) - sample.at_s for index, sample in enumerate(found.samples))
    return sum(s.bit_per_s * length / 8 for s, length in zip(found.samples, lengths, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_all_bytes_of_a_mahimahi_trace_are_its_packets(seed):
    random = Random(seed)
    times = sorted(random.randrange(0, 5000) for _ in range(random.randrange(1, 3000)))
    times[-1] = max(times[-1], 1)
    found = rates("\n".join(map(str, times)), step_s=random.choice([0.05, 0.5, 0.7, 3.0, None]))
    assert total_bytes(found) == pytest.approx(len(times) * PACKET_BYTES)
    assert found.end_s == pytest.approx(times[-1] / 1e3)


def test_one_packet_each_millisecond_is_12_mbit_per_second():
    found = rates("\n".join(str(ms) for ms in range(1, 2001)))
    assert [(s.at_s, s.bit_per_s) for s in found.samples] == [(t / 2, pytest.approx(12e6)) for t in range(4)]


def test_a_repeated_mahimahi_trace_has_its_bytes_as_often():
    found = rates("200\n700\n700\n1000\n", until_s=3.0)
    assert total_bytes(found) == pytest.approx(3 * 4 * PACKET_BYTES) and found.end_s == 3.0


def test_the_bytes_of_an_hsdpa_log_are_those_of_its_fifth_column():
    found = rates(HSDPA)
    assert total_bytes(found) == pytest.approx(248069 + 191698 + 280579)
    assert [s.at_s for s in found.samples] == pytest.approx([0.0, 1.008, 2.088])


def test_ucc_has_kbit_per_second_of_both_ways_and_a_missing_one_keeps_the_rate():
    assert rates(UCC).samples == ((0.0, 5178e3), (3.0, 6990e3))
    assert rates(UCC, upload=True).samples == ((0.0, 194e3), (1.0, 130e3), (3.0, 0.0))


def test_lumos_has_mbit_per_second_of_one_run():
    assert rates(LUMOS, only="1").samples == ((0.0, 250.5e6), (1.0, 100e6))
    with pytest.raises(SpecError, match=r"has 2 of run_num .1, 2.: add the option only="):
        rates(LUMOS)


def test_lines_of_the_fcc_follow_each_other_where_their_times_are_left_aside():
    found = rates(FCC, only="77", each_s=5)
    assert found.samples == ((0.0, 2e6), (5.0, 1e6)) and found.end_s == 10.0
    with pytest.raises(SpecError, match=r"x, line 3: its time is not after"):
        rates(FCC, only="77")


def test_two_columns_are_seconds_and_mbit_per_second():
    assert rates("10.5 1.5\n11 0.25\n").samples == ((0.0, 1.5e6), (0.5, 0.25e6))


def test_a_part_is_played_from_time_0_on():
    plain = "at_s,bit_per_s\n0,1e6\n2,2e6\n4,3e6\n"
    assert rates(plain, from_s=3, until_s=5).samples == ((0.0, 2e6), (1.0, 3e6))
    assert rates(plain, from_s=5, until_s=9).samples == ((0.0, 3e6), (1.0, 1e6), (3.0, 2e6))


def test_a_scenario_has_a_change_where_the_rate_changes_and_at_least_a_packet_a_second():
    made = parse_file("500\n500\n1500\n2000\n", "t.up", "hub--desk", "direction=forward")
    assert [(c.at_s, c.bit_per_s, c.direction, c.link) for c in made.changes] == [
        (0.0, 48e3, "forward", "hub--desk"),
        (0.5, LEAST_BIT_PER_S, "forward", "hub--desk"),
        (1.0, 24e3, "forward", "hub--desk"),
    ]


def test_both_directions_come_from_two_files_and_a_link_stands_behind_the_name(tmp_path):
    (tmp_path / "up").write_text("500\n")
    (tmp_path / "a@b,down.csv").write_text("at_s,link,bit_per_s\n0.25,hub--desk,5e6\n")
    found = read_scenario(f"{tmp_path}/up@hub--desk,direction=forward + {tmp_path}/a@b,down.csv")
    assert [(c.at_s, c.bit_per_s, c.direction) for c in found.changes] == [
        (0.0, 24e3, "forward"),
        (0.25, 5e6, "both"),
    ]


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("5\n4\n", "", "x, line 2: expected a whole number of milliseconds, at least"),
        ("5\n1e999\n", "", "x, line 2: expected a number of at least 0"),
        ("5\n6 7\n", "", "x, line 2: has 2 columns, expected 1"),
        ("0\n0\n", "", "no packet after 0 ms"),
        ("", "", "in no format of rates"),
        ("a,b\n1,2\n", "", "in no format of rates"),
        ("1 2 3\n", "", "in no format of rates"),
        ("at_s,bit_per_s\n0,1e6\n0,2e6\n", "", "x, line 3: its time is not after"),
        ("at_s,bit_per_s\n0,1e6\n1,nan\n", "", "x, line 3, bit_per_s: expected a number"),
        ("at_s,bit_per_s\n0\n", "", "x, line 2: has 1 cells, expected 2"),
        ("at_s,bit_per_s\n", "", "has no rates"),
        (
            UCC.replace("13.03.25", "noon"),
            "",
            "x, line 3, Timestamp: expected a time such as 2020.01.31_00.00.00",
        ),
        (HSDPA.replace("1080", "0"), "", "x, line 2: expected a later time"),
        (HSDPA, "only=3", "the option only does not fit this file"),
        ("5\n", "speed=3", "the option 'speed=3'"),
        ("5\n", "step_s=-1", "x, options, step_s"),
        ("5\n", "from_s=2,until_s=1", "expected more than from_s"),
        ("5\n", "from_s=2", "lasts 0.005 s, and from_s is 2"),
        ("5\n", "until_s=1e9", "more than 2,000,000 rates"),
    ],
)
def test_a_bad_file_of_rates_is_refused_with_its_line(text, options, complaint):
    with pytest.raises(SpecError, match=complaint) as caught:
        parse_file(text, "x", "a--b", options)
    assert str(caught.value).startswith("x") and str(caught.value).endswith(".")


def test_rates_without_a_link_and_links_twice_are_refused(tmp_path):
    with pytest.raises(SpecError, match=r"of no link: name one behind the file: t.up@LINK"):
        parse_file("5\n", "t.up")
    with pytest.raises(SpecError, match="names the links of its changes itself"):
        parse_file("at_s,link,bit_per_s\n0,a--b,1\n", "t.csv", "a--b")
    with pytest.raises(SpecError, match="not a regular file"):
        read_scenario(f"{tmp_path}@a--b")


def test_changes_lie_in_order_and_none_repeats_the_rate_before_it():
    made = parse_file("at_s,bit_per_s\n0,5\n1,7\n2,1e6\n3,1e6\n4,2e6\n", "x.csv", "a--b")
    assert [(c.at_s, c.bit_per_s) for c in made.changes] == [(0, LEAST_BIT_PER_S), (2, 1e6), (4, 2e6)]
    assert math.isclose(LEAST_BIT_PER_S, 8 * PACKET_BYTES)


IPERF3 = {
    "start": {"version": "iperf 3.16"},
    "intervals": [
        {"sum": {"start": 0, "end": 1.0, "bits_per_second": 5e6, "omitted": True}},
        {"sum": {"start": 0, "end": 1.0, "bits_per_second": 94.12e6, "omitted": False}},
        {"sum": {"start": 1.0, "end": 2.0, "bits_per_second": 47.06e6, "omitted": False}},
    ],
    "end": {},
}


def test_the_intervals_of_iperf3_are_the_rates_of_a_link():
    found = parse_file(json.dumps(IPERF3), "wifi.json", "a--b")
    assert [(change.at_s, change.link, change.bit_per_s) for change in found.changes] == [
        (0.0, "a--b", 94.12e6),
        (1.0, "a--b", 47.06e6),
    ]
    with pytest.raises(SpecError, match=r"are of no link: name one behind the file: wifi\.json@LINK"):
        parse_file(json.dumps(IPERF3), "wifi.json")
    with pytest.raises(SpecError, match="has no intervals with a sum"):
        parse_file(json.dumps(IPERF3 | {"intervals": [{}]}), "wifi.json", "a--b")


def test_a_qdisc_of_tc_is_refused_with_what_it_says_of_the_link():
    """tc counts bytes per second: 12,500,000 are 100 Mbit/s."""
    options = {"delay": {"delay": 0.005}, "loss-random": {"loss": 0.02}, "rate": {"rate": 12500000}}
    text = json.dumps([{"kind": "netem", "dev": "eth0", "options": options}])
    with pytest.raises(SpecError, match=r"dev eth0: bit_per_s = 1e\+08, delay_s = 0\.005, loss_frac = 0\.02"):
        parse_file(text, "tc.json")
