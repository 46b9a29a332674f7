"""Recorded files at their edges: parts that end, lines that overlap or lie in disorder, zones of time."""

import math
import time

import pytest

from engine.domain.errors import SpecError
from engine.models.catalogue import resolve
from engine.recorded.files import moment_of, parse_options, text_of
from engine.recorded.prompts import parse_prompts, traced
from engine.recorded.rates import RateOptions, parse_rates
from engine.recorded.requests import parse_requests
from engine.recorded.scenarios import parse_file

PLAIN = "at_s,bit_per_s\n0,1e6\n2,2e6\n4,3e6\n"
FCC = "unit_id,dtime,bytes_sec\n"
LUMOS = "run_num,seq_num,Throughput\n1,1,250\n1,2,100\n10,1,3\n"


def rates(text, **options):
    return parse_rates(text, "x", RateOptions(**options))


def test_a_part_lasts_until_its_end_and_not_from_the_beginning_of_the_file():
    assert rates(PLAIN, from_s=3, until_s=5).end_s == 2.0
    assert rates(PLAIN).end_s == 6.0


@pytest.mark.parametrize("until_s", [6.0, math.nextafter(6.0, 0), 12.0])
def test_a_file_that_is_repeated_begins_again_only_where_time_is_left(until_s):
    found = rates(PLAIN, until_s=until_s)
    assert len(found.samples) == (6 if until_s > 6 else 3)
    assert all(sample.at_s < until_s for sample in found.samples)


def test_a_part_that_begins_where_the_file_ends_or_where_it_ends_itself_is_refused():
    with pytest.raises(SpecError, match="lasts 6 s, and from_s is 6"):
        rates(PLAIN, from_s=6)
    with pytest.raises(SpecError, match="expected more than from_s"):
        parse_file(PLAIN, "x", "a--b", "from_s=2,until_s=2")


def test_one_line_lasts_as_long_as_lines_follow_each_other():
    assert rates("at_s,bit_per_s\n7,1e6\n", each_s=5).end_s == 5.0


def test_lines_follow_each_other_whoever_has_recorded_between_them():
    two = FCC + "77,2016-06-01 00:00:05,250\n78,2016-06-01 00:00:06,1\n\n77,2016-06-01 00:00:09,125\n"
    assert rates(two, only="77", each_s=5).samples == ((0.0, 2000.0), (5.0, 1000.0))


def test_lines_of_the_fcc_are_taken_by_their_time():
    mixed = FCC + "77,2016-06-01 00:00:09,125\n77,2016-06-01 00:00:05,250\n"
    assert rates(mixed).samples == ((0.0, 2000.0), (4.0, 1000.0))


def test_one_of_several_is_meant_by_its_whole_name():
    assert rates(LUMOS, only="1").samples == ((0.0, 250e6), (1.0, 100e6))


def test_times_of_an_hsdpa_log_that_overlap_begin_where_the_one_before_ended():
    found = rates("1 1000 59.8 10.7 1000 1000\n2 2000 59.8 10.7 3000 1500\n")
    assert found.samples == ((0.0, 8000.0), (1.0, 16000.0)) and found.end_s == 2.0


@pytest.mark.parametrize("between", [" ", "\t"])
def test_places_south_and_west_are_places(between):
    line = between.join(("1", "1000", "-33.8", "-10.7", "1000", "1000"))
    assert rates(line).samples == ((0.0, 8000.0),)


def test_a_column_that_another_format_has_too_does_not_make_it_that_format():
    assert rates("Timestamp,at_s,bit_per_s\nnoon,0,5e6\n").samples == ((0.0, 5e6),)
    with pytest.raises(SpecError, match="columns are"):
        parse_file("at_s,link,bit_per_s,comment\n0,a--b,1e6,x\n", "x.csv")


def test_empty_lines_and_empty_cells_say_nothing():
    assert rates("\n\nat_s,bit_per_s\n,\n0,5e6\n,\n").samples == ((0.0, 5e6),)


def test_a_mark_of_the_order_of_bytes_is_no_part_of_the_first_name(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfat_s,bit_per_s\n0,5e6\n")
    assert rates(text_of(tmp_path / "a.csv", "the rates")).samples == ((0.0, 5e6),)


def test_an_option_is_given_once():
    with pytest.raises(SpecError, match="once at most"):
        parse_options(RateOptions, "from_s=1,from_s=2", "x")


@pytest.fixture
def elsewhere(monkeypatch):
    """This process in a zone five and a half hours ahead."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_time_without_a_zone_is_in_utc_and_one_with_a_zone_in_that(elsewhere):
    assert moment_of("1970-01-01 00:00:10", "x") == 10.0
    assert moment_of("1970-01-01 02:00:10+02:00", "x") == 10.0
    assert moment_of("1970-01-01 02:00:10.2500000+02:00", "x") == 10.25


def test_a_request_at_the_end_of_a_part_is_not_in_it():
    own = "at_s,prompt_tokens,new_tokens\n0,8,4\n2,16,2\n"
    assert [one.at_s for one in parse_requests(own, "x", "until_s=2").requests] == [0.0]


def test_prompts_that_say_when_they_arrive_have_no_rate():
    model, weights = resolve("tiny-gpt2", "random")
    prompts = parse_prompts('{"prompt": "Hello", "at_s": 1}\n', "x")
    with pytest.raises(SpecError, match="leave out the rate"):
        traced(prompts, model, weights, 4, rate_per_s=2.0)
