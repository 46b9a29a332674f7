"""Models with a vision tower: who computes it, its memory, and unchanged layers behind it."""

import pytest

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import ComputedSlice, HeldSlice, Plan, Slice
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.ledger import Ledger
from engine.ops.sizes import model_bytes, weight_bytes
from engine.runs.predict import predict, simulate
from engine.runs.predict import prepare as prepared
from engine.strategies.registry import STRATEGIES
from engine.strategies.shared.demand import demand_of, end_ops
from tests.support.small_cases import plan_of, star
from tests.support.small_cases import spec_of as small_spec

VIT, LLAVA = (catalogue.resolve(name)[0] for name in ("tiny-vit", "tiny-llava"))
TOWER, EMBED = Slice(layer=-1, part="vision"), Slice(layer=-1, part="embed")
NAMES = [strategy.name for strategy in STRATEGIES]


def spec_of(strategy, model, cluster, **workload):
    workload = {"prompt_tokens": 7, "new_tokens": 3} | workload if model.reads_text else {"new_tokens": 0}
    return RunSpec(cluster=cluster, model=model, strategy=strategy, seed=5, workload=Workload(**workload))


def spans(spec):
    trace, outcome = simulate(prepared(spec))
    assert outcome.kind == "finished"
    return [item for item in trace if isinstance(item, Span) and item.kind == "compute"]


def seer_of(spec):
    """Who sees, as planned: the source, or whoever has the ends for it."""
    part = "vision" if spec.model.has_tower else "embed"
    (device,) = {work.device for work in prepared(spec).plan.work if work.slice.part == part}
    return spec.cluster.devices[device].name


def supported(name, cluster, model):
    return next(s for s in STRATEGIES if s.name == name).supports(cluster, model) is None


@pytest.mark.parametrize("name", NAMES)
def test_only_one_device_sees_and_only_once_per_prompt(name):
    cluster = star([2e10, 1e10, 1e10], terminal=True)
    if not supported(name, cluster, LLAVA):
        pytest.skip("this strategy has no such model")
    spec = spec_of(name, LLAVA, cluster, requests=2)
    assert seer_of(spec) == ("d0" if name == "cloud_only" else "term")
    work = [span for span in spans(spec) if span.name in ("embed_image", "tower_block", "project_image")]
    assert {span.device for span in work} == {seer_of(spec)}
    assert [span.name for span in work] == 2 * ["embed_image", "tower_block", "tower_block", "project_image"]
    assert {span.token for span in work} == {0}


@pytest.mark.parametrize("name", NAMES)
def test_a_classifier_s_ends_are_its_picture_and_its_classes(name):
    cluster = star([2e10, 1e10, 1e10], terminal=True)
    if not supported(name, cluster, VIT):
        pytest.skip("this strategy has no such model")
    spec = spec_of(name, VIT, cluster)
    ends = [span for span in spans(spec) if span.name in ("embed_image", "classify", "final_hidden")]
    assert [(span.name, span.device) for span in ends] == [
        ("embed_image", seer_of(spec)),
        ("classify", seer_of(spec)),
    ]


def test_the_tower_is_held_by_the_source_and_works_in_prefill_only():
    cluster = star([1e10] * 2, source=1)
    plan = plan_of(small_spec("gpipe", LLAVA, cluster, rows=16))
    assert [(h.device, h.home) for h in plan.holdings if h.slice == TOWER] == [(1, "resident")]
    assert [(w.device, w.phase) for w in plan.work if w.slice == TOWER] == [(1, "prefill")]
    plan.validate_cover(LLAVA, 16, generates=True)
    assert not any(
        piece.part == "vision"
        for piece in plan_of(small_spec("gpipe", VIT, cluster, rows=VIT.image_rows)).held_by(1)
    )


def test_a_plan_in_which_no_device_computes_the_tower_is_refused():
    plan = plan_of(small_spec("single", LLAVA, star([1e10]), rows=16))
    blind = plan.model_copy(update={"work": tuple(w for w in plan.work if w.slice != TOWER)})
    with pytest.raises(PlanError, match=r"prefill, layer -1 vision: no device computes it"):
        blind.validate_cover(LLAVA, 16, generates=True)
    elsewhere = Plan(
        strategy="x",
        holdings=(*plan.holdings, HeldSlice(device=1, slice=EMBED)),
        work=tuple(ComputedSlice(device=1, slice=TOWER) if w.slice == TOWER else w for w in plan.work),
        layout=plan.layout,
    )
    with pytest.raises(PlanError, match=r"vision: device 1 computes .* without its weights"):
        elsewhere.validate_cover(LLAVA, 16, generates=True)


@pytest.mark.parametrize("model", [VIT, LLAVA], ids=lambda model: model.name)
def test_a_single_device_holds_the_whole_model_and_no_more(model):
    plan = plan_of(small_spec("single", model, star([1e10]), rows=model.image_rows + 4 * model.reads_text))
    ledger = Ledger("d0", 1e9, model)
    for piece in plan.held_by(0):
        ledger.load(piece)
    assert ledger.weights_bytes == model_bytes(model)


def test_a_tied_head_is_counted_once_and_the_tower_in_full():
    tied = LLAVA.model_copy(update={"tied_head": True})
    ledger = Ledger("d0", 1e9, tied)
    sizes = [ledger.load(piece) for piece in (EMBED, TOWER, Slice(layer=-1, part="lm_head"))]
    assert sizes[1] == weight_bytes(tied, TOWER)
    assert sizes[2] == weight_bytes(tied, Slice(layer=-1, part="lm_head")) - weight_bytes(tied, EMBED)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cloud_only"])
def test_a_device_too_small_for_the_tower_is_named(name):
    """A server that has room for the whole model is what cloud_only looks for."""
    cluster = star([1e10] * 3, terminal=True)
    if not supported(name, cluster, LLAVA):
        pytest.skip("this strategy has no such model")
    seer = seer_of(spec_of(name, LLAVA, cluster))
    small = {"memory_bytes": weight_bytes(LLAVA, TOWER)}
    devices = tuple(d.model_copy(update=small) if d.name == seer else d for d in cluster.devices)
    with pytest.raises(PlanError, match=rf"{seer} needs .* has"):
        prepared(spec_of(name, LLAVA, cluster.model_copy(update={"devices": devices})))


@pytest.mark.parametrize("model", [VIT, LLAVA], ids=lambda model: model.name)
def test_the_operations_that_are_checked_for_memory_are_those_that_run(model):
    spec = spec_of("single", model, star([1e10]))
    rows = len(prepared(spec).requests[0].tokens)
    workload = spec.workload.model_copy(update={"prompt_tokens": rows})
    checked = [one.op.name for one in end_ops(model, demand_of(model, workload, True))]
    ran = [span.name for span in spans(spec) if span.layer < 0 and span.token == 0]
    assert checked == ran


@pytest.mark.parametrize(("model", "rows"), [(VIT, 9), (VIT, 11), (LLAVA, 9)], ids=str)
def test_a_plan_counts_the_picture_s_rows_or_is_refused(model, rows):
    with pytest.raises(SpecError, match=r"count them too|needs? .* positions"):
        plan_of(small_spec("single", model, star([1e10]), rows=rows, new_tokens=int(model.causal)))


def test_pictures_cost_time_before_the_first_token_and_none_after():
    cluster = star([1e9] * 2)
    text = LLAVA.model_copy(update={"vision": None, "family": "llama"})
    seen = predict(spec_of("gpipe", LLAVA, cluster))
    read = predict(spec_of("gpipe", text, cluster, prompt_tokens=16))
    assert seen.ttft_s > read.ttft_s
    assert seen.tpot_s == pytest.approx(read.tpot_s)
