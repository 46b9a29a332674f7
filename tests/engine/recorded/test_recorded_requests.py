"""Traces of requests in the formats of Azure, BurstGPT and our own, and prompts of a JSONL file."""

import json

import pytest

from engine.domain.arrivals import arrivals_s
from engine.domain.errors import SpecError
from engine.domain.spec import WeightsRef
from engine.domain.workload import TracedRequest, Workload
from engine.models.catalogue import resolve
from engine.recorded.prompts import parse_prompts, read_prompts, traced
from engine.recorded.requests import parse_requests, read_requests

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    "2023-11-16 18:16:46.6805900,879,55\n"
)
BURST = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "45,u,1.5,ChatGPT,1087,230,1317,Conversation log\n5,u,2,ChatGPT,472,18,490,Conversation log\n"
    "118,,,GPT-4,417,0,417,API log\n"
)
OWN = "at_s,prompt_tokens,new_tokens\n2,8,4\n0.5,16,2\n"


def rows(text, options=""):
    return [(r.at_s, r.prompt_tokens, r.new_tokens) for r in parse_requests(text, "x", options).requests]


def test_azure_counts_from_its_first_request_with_all_digits_of_a_second():
    assert rows(AZURE) == [(0.0, 374, 44), (pytest.approx(4.314579), 396, 109), (60.0, 879, 55)]
    zoned = AZURE.replace("0,374", "0+00:00,374").replace("50.9951690,", "50.9951690+00:00,")
    assert rows(zoned)[1][0] == pytest.approx(4.314579)


def test_requests_of_burstgpt_that_failed_are_left_out_and_that_is_said():
    found = parse_requests(BURST, "x")
    assert [(r.at_s, r.prompt_tokens, r.new_tokens) for r in found.requests] == [
        (0, 472, 18),
        (40, 1087, 230),
    ]
    assert found.notes == ("1 of 3 requests had no tokens: left out.",)


def test_a_part_may_be_taken_stretched_and_cut():
    assert rows(AZURE, "until_s=10,stretch=2,most_prompt_tokens=380,most_new_tokens=50") == [
        (0.0, 374, 44),
        (pytest.approx(8.629158), 380, 50),
    ]
    assert parse_requests(AZURE, "x", "most_new_tokens=50").notes == (
        "2 of 3 requests were longer: cut to the asked length.",
    )
    assert rows(AZURE, "from_s=4,requests=1") == [(0.0, 396, 109)]


def test_our_own_times_stay_as_they_are_written():
    assert rows(OWN) == [(0.5, 16, 2), (2.0, 8, 4)]
    assert rows(OWN, "from_s=1") == [(1.0, 8, 4)]


def test_what_is_read_is_the_trace_of_a_workload_and_comes_back_as_it_was_written():
    trace = Workload.parse({"pattern": "trace", "trace": parse_requests(OWN, "x").requests}, "w").trace
    written = "at_s,prompt_tokens,new_tokens\n" + "".join(
        f"{row.at_s},{row.prompt_tokens},{row.new_tokens}\n" for row in trace
    )
    assert parse_requests(written, "x").requests == trace


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("a,b\n1,2\n", "", "x: columns are a, b, expected at_s, prompt_tokens, new_tokens; or TIMESTAMP"),
        (OWN.replace("2,8,4", "soon,8,4"), "", "x, line 2, at_s: expected a number"),
        (OWN.replace("2,8,4", "2,8.5,4"), "", "x, line 2, prompt_tokens: expected a whole number"),
        (OWN.replace("2,8,4", "2,8,0"), "", "x, line 2: expected at least one token in and one out"),
        (OWN.replace("2,8,4", "2,8"), "", "x, line 2: has 2 cells, expected 3"),
        (AZURE.replace("2023-11-16 18:15:50", "Thursday"), "", "x, line 3, TIMESTAMP: expected a time"),
        (AZURE, "from_s=100", "no request in the asked part"),
        (AZURE, "requests=0", "x, options, requests"),
        (OWN.replace("at_s", "at_s,more").replace("2,8", "2,1,8"), "", "x: columns are at_s, more"),
    ],
)
def test_a_bad_trace_of_requests_is_refused_with_its_line(text, options, complaint):
    with pytest.raises(SpecError, match=complaint):
        parse_requests(text, "x", options)


def test_a_file_is_named_with_its_options(tmp_path):
    (tmp_path / "conv.csv").write_text(AZURE)
    assert len(read_requests(f"{tmp_path}/conv.csv,requests=2").requests) == 2
    with pytest.raises(SpecError, match="cannot read the requests"):
        read_requests(f"{tmp_path}/none.csv")
    with pytest.raises(SpecError, match="at no link"):
        read_requests(f"{tmp_path}/conv.csv@a--b")


def test_a_prompt_of_random_weights_is_its_bytes_and_arrives_when_it_says(tmp_path):
    model, weights = resolve("tiny-gpt2", "random")
    file = tmp_path / "p.jsonl"
    file.write_text('{"prompt": "Hi", "new_tokens": 3, "at_s": 2}\n\n{"prompt": "Hello", "at_s": 1}\n')
    assert traced(read_prompts(str(file)), model, weights, 16) == (
        TracedRequest(at_s=1, prompt_tokens=5, new_tokens=16, tokens=ids("Hello", model)),
        TracedRequest(at_s=2, prompt_tokens=2, new_tokens=3, tokens=ids("Hi", model)),
    )
    assert len(read_prompts(f"{file},requests=1")) == 1


def ids(text, model):
    return tuple(byte % model.num_text_tokens for byte in text.encode())


def test_prompts_arrive_at_random_as_poisson_does():
    model, weights = resolve("tiny-gpt2", "random")
    lines = "\n".join(json.dumps({"prompt": f"number {index}"}) for index in range(4))
    found = traced(parse_prompts(lines, "x"), model, weights, 2, rate_per_s=3.0, seed=7)
    poisson = Workload(pattern="poisson", rate_per_s=3.0, requests=4, prompt_tokens=8, new_tokens=2)
    assert tuple(row.at_s for row in found) == arrivals_s(poisson, 7)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "x: has no prompt"),
        ('{"prompt": "a"}\n{"prompt"', "x, line 2: is no JSON"),
        ("[1]", "x, line 1: expected an object"),
        ('{"prompt": ""}', "x, line 1, prompt"),
        ('{"text": "a"}', "x, line 1, "),
        ('{"prompt": "a", "at_s": 1}\n{"prompt": "b"}', "1 of 2 prompts have at_s"),
        ('{"prompt": "a", "new_tokens": 0}', "x, line 1, new_tokens"),
    ],
)
def test_a_bad_file_of_prompts_is_refused_with_its_line(text, complaint):
    with pytest.raises(SpecError, match=complaint):
        parse_prompts(text, "x")


def test_a_model_that_does_not_continue_text_takes_no_prompts():
    model, _ = resolve("tiny-vit", "random")
    with pytest.raises(SpecError, match="does not continue a text"):
        traced(parse_prompts('{"prompt": "a"}', "x"), model, WeightsRef(), 2)
