"""EdgeFormer's report: the head map as JSON, how heads to prune were found, what the command line says."""

import json

import pytest

from engine.domain.scenario import Scenario, SlowDevice
from engine.domain.stored import read_report, to_document
from engine.domain.trace import Mark
from engine.runs.predict import predict
from tests.support.small_cases import GPT2, play, spec_of, star

SLOW = star([1e6] * 3)


def report_of(cluster=SLOW, **more):
    return predict(spec_of("edgeformer", GPT2, cluster, **{"prune": "paper"} | more)).method


def test_every_block_lists_the_device_of_each_head():
    report = report_of(t_max=0.7, lending="paper")
    marks = [
        m.facts
        for m in play(spec_of("edgeformer", GPT2, SLOW, prune="paper", t_max=0.7, lending="paper"))
        if isinstance(m, Mark) and m.name == "heads"
    ]
    assert [block.layer for block in report.blocks] == [0, 1, 2]
    for block, facts in zip(report.blocks, marks, strict=True):
        assert block.owner == "d0"
        assert list(block.device_of) == facts["device_of"]
        assert block.device_of.count(-1) == block.pruned == 1
        assert block.lent == sum(rank > 0 for rank in block.device_of)
        assert block.kept == 3 and len(block.scores) == 4
        assert block.t_max_s >= block.collab_s > 0


def test_hits_misses_and_measured_heads_are_counted_over_all_requests():
    report = report_of(t_max=0.7, requests=3, expected_hits=0.5, on_miss="exact")
    for block in report.blocks:
        assert (block.hits, block.misses, block.measured) == (4, 8, 4 + 1 + 1)


def test_without_a_deadline_nothing_is_compared_and_deciding_takes_no_time():
    report = report_of(t_max_mode="none")
    assert (report.decision_s, report.decision_frac) == (0, 0)
    assert all(block.t_max_s is None and set(block.scores) == {None} for block in report.blocks)
    assert report.lines()[-1] == "No head had to be measured: all were kept."


def test_the_share_of_deciding_is_that_of_the_operations_of_the_first_pass():
    spec = spec_of("edgeformer", GPT2, star([1e6]), prune="paper", t_max=0.7)
    trace = play(spec)
    seconds = {}
    for span in trace:
        if not isinstance(span, Mark) and span.kind == "compute" and span.token == 0:
            seconds[span.name] = seconds.get(span.name, 0) + span.end_s - span.start_s
    deciding = seconds["features"] + seconds["statistics"] + seconds["weigh"] / 4  # one of four heads goes
    report = predict(spec).method
    assert report.decision_s == pytest.approx(deciding)
    assert report.decision_frac == pytest.approx(deciding / sum(seconds.values()))


def test_moves_after_a_change_are_counted_and_the_last_map_is_shown():
    cluster = star([1e6] * 3)
    spec = spec_of("edgeformer", GPT2, cluster, lending="paper", t_max_mode="none")
    middle_s = predict(spec).requests[0].token_s[1]
    change = SlowDevice(at_s=middle_s, device="d1", factor=100)
    report = predict(spec.model_copy(update={"scenario": Scenario(changes=(change,))})).method
    assert all(block.moves == 1 and 1 not in block.device_of for block in report.blocks)
    assert "moved 1 times" in report.lines()[1]


def test_the_command_line_groups_blocks_that_are_alike():
    lines = report_of(star([1e6]), t_max=0.7).lines()
    assert lines[0] == "Heads: 9 of 12 kept, 0 of them lent to neighbours; 3 pruned."
    assert lines[1] == "  layers 0 to 2 on d0: 3 kept, 0 lent, 1 pruned"
    assert "0 heads were known and 12 were not; of these 12 were measured" in lines[2]


def test_the_report_survives_storing_and_is_plain_json():
    report = predict(spec_of("edgeformer", GPT2, SLOW, t_max=0.7))
    document = json.loads(json.dumps(to_document(report)))
    assert document["method"]["kind"] == "heads"
    assert document["method"]["blocks"][0]["device_of"] == list(report.method.blocks[0].device_of)
    assert read_report(document, "report").needed().method == report.method
