"""The oldest keys and values on disk, read back in every step: operations, numbers and tokens are those of
unlimited memory, and less memory is enough.
"""

from collections import Counter, defaultdict

import pytest
import torch
from test_kv_pressure import MODELS, NEW, ROWS, STRATEGIES, least_memory, sized

from engine.domain.errors import PlanError
from engine.ops.core import Attention
from engine.ops.ledger import Ledger
from engine.ops.sizes import kv_bytes_per_row
from engine.ops.tensors import Meta
from engine.runs.predict import predict
from engine.strategies.shared.demand import Demand
from tests.support.memory_world import alone, run_in_memory
from tests.support.small_cases import GPT2, LLAMA, plan_of, play, prompts, spec_of, star


def offloading(name, model, requests=1, pattern="sporadic", short_bytes=2500):
    """A workload whose cache does not fit by so much, with and without offloading, and with all memory."""
    more = {"rows": ROWS, "new_tokens": NEW, "requests": requests, "pattern": pattern}
    plain = spec_of(name, model, star([1e10] * 2), **more)
    spec = plain.model_copy(update={"params": {"kv_pressure": "offload_kv"}})
    memory_bytes = least_memory(plain) - short_bytes
    return sized(spec, memory_bytes), sized(plain, memory_bytes), plain


def computed(trace):
    """What is computed and sent, whenever."""
    fields = ("device", "kind", "name", "layer", "payload_bytes", "flops", "peer", "request", "token")
    return Counter(
        tuple(getattr(span, field) for field in fields)
        for span in trace
        if getattr(span, "kind", "") in ("compute", "send")
    )


def disk(trace, kind):
    return [s for s in trace if getattr(s, "kind", "") == kind and s.name == "kv_rows"]


CASES = [
    ("gpipe", "llama", "sporadic"),
    ("gpipe", "gpt2", "bursty"),
    ("edgeshard", "gpt2", "bursty"),
    ("edgeshard", "llama", "sporadic"),
    ("galaxy", "gpt2", "sporadic"),
    ("galaxy", "llama", "bursty"),
    ("tpi_llm", "llama", "bursty"),
    ("tpi_llm", "gpt2", "sporadic"),
]


@pytest.mark.parametrize(("name", "family", "pattern"), CASES)
def test_rows_on_disk_give_the_very_numbers_of_unlimited_memory(name, family, pattern):
    spec, plain, _ = offloading(name, MODELS[family], 2, pattern)
    with pytest.raises(PlanError, match=r"needs .* has .*B"):
        plan_of(plain)
    plan = plan_of(spec)
    assert 0 < plan.layout.kv_memory_rows < ROWS + NEW - 1
    source, world = run_in_memory(spec, plan, prompts(spec))  # raises OutOfMemory if the planner was wrong
    assert not any(device.caches or device.row_files.files for device in world.devices)
    expected = alone(MODELS[family], ROWS, NEW, requests=2)
    for request in range(2):
        logits, wanted = torch.stack(source.logits[request]), torch.stack(expected.logits[request])
        torch.testing.assert_close(logits, wanted, rtol=1e-4, atol=1e-4)
        assert torch.equal(logits.argmax(-1), wanted.argmax(-1))


def with_all_rows_in_memory(plan):
    """The same plan without a limit of the rows that stay in memory."""
    return plan.model_copy(update={"layout": plan.layout.model_copy(update={"kv_memory_rows": None})})


def test_a_pipeline_gives_the_same_bits_wherever_its_rows_are():
    spec, _, ample = offloading("gpipe", MODELS["gpt2"])
    plan = plan_of(spec)
    roomy = with_all_rows_in_memory(plan)
    found, _ = run_in_memory(spec, plan, prompts(spec))
    wanted, _ = run_in_memory(ample, roomy, prompts(ample))
    assert torch.equal(torch.stack(found.logits[0]), torch.stack(wanted.logits[0]))


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_operation_and_no_message_differs_from_unlimited_memory(name):
    spec, _, ample = offloading(name, MODELS["gpt2"])
    plan = plan_of(spec)
    roomy = with_all_rows_in_memory(plan)
    found, wanted = computed(play(spec, plan)), computed(play(ample, roomy))
    if name in ("gpipe", "edgeshard"):  # whole layers are computed in parts
        found, wanted = (Counter(key for key in all_ if key[1] == "send") for all_ in (found, wanted))
    assert found == wanted


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_row_is_written_once_and_read_back_in_every_later_step(name):
    spec, _, _ = offloading(name, MODELS["gpt2"])
    plan = plan_of(spec)
    kept, trace = plan.layout.kv_memory_rows, play(spec, plan)
    row_bytes = kv_bytes_per_row(GPT2, GPT2.num_kv_heads)
    written, read = (defaultdict(list), defaultdict(list))
    for kind, by_step in (("store", written), ("load", read)):
        for span in disk(trace, kind):
            by_step[span.layer, span.token].append(span.bytes)
    for layer in range(MODELS["gpt2"].num_layers):
        for token in range(NEW):
            before, after = (max(0, rows - kept) for rows in (ROWS + token - 1, ROWS + token))
            before = before if token else 0
            assert sum(written[layer, token]) == (after - before) * row_bytes
            assert sum(read[layer, token]) == before * row_bytes


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_plan_offloads_more_rows_than_it_must_and_none_overflows(name):
    spec, _, _ = offloading(name, MODELS["gpt2"])
    kept = plan_of(spec).layout.kv_memory_rows
    memory = spec.cluster.devices[0].memory_bytes
    more = plan_of(sized(spec, memory * 1.02)).layout.kv_memory_rows
    assert more is None or more >= kept
    peaks = {device.name: device.peak_memory_bytes for device in predict(spec).devices}
    assert max(peaks.values()) <= memory


def test_a_slow_disk_costs_its_reading_time_and_a_fast_one_hides_behind_the_layers():
    spec, _, _ = offloading("gpipe", MODELS["gpt2"])

    def duration_s(byte_per_s):
        devices = tuple(d.model_copy(update={"disk_byte_per_s": byte_per_s}) for d in spec.cluster.devices)
        cluster = spec.cluster.model_copy(update={"devices": devices})
        trace = play(spec.model_copy(update={"cluster": cluster}), plan_of(spec))
        moved = sum(s.bytes for kind in ("load", "store") for s in disk(trace, kind))
        return max(s.end_s for s in trace if hasattr(s, "end_s")), moved

    instant_s, moved = duration_s(1e15)
    slow_s, _ = duration_s(1e4)
    assert moved / 1e4 / 2 < slow_s <= instant_s + moved / 1e4
    fast_s, _ = duration_s(1e9)
    assert fast_s - instant_s < moved / 1e9


def test_a_prompt_may_be_too_long_for_memory_already():
    model = GPT2.model_copy(update={"num_layers": 12})
    spec = spec_of("gpipe", model, star([1e10] * 2), rows=24, new_tokens=3, kv_pressure="offload_kv")
    tight = sized(spec, least_memory(spec.model_copy(update={"params": {}})) - 8000)
    assert plan_of(tight).layout.kv_memory_rows < 24
    source, _ = run_in_memory(tight, plan_of(tight), prompts(tight))
    expected = alone(model, rows=24, new_tokens=3)
    torch.testing.assert_close(torch.stack(source.logits[0]), torch.stack(expected.logits[0]))


def test_with_enough_memory_nothing_is_offloaded():
    for name in STRATEGIES:
        spec = spec_of(name, GPT2, star([1e10] * 2), kv_pressure="offload_kv")
        assert plan_of(spec).layout.kv_memory_rows is None


def grown(rows):
    """A ledger with one layer's cache of so many rows."""
    ledger = Ledger("d0", 1e6, LLAMA)
    op = Attention(0, 0, 0, False, "r0")
    wide = Attention(0, 0, LLAMA.num_heads, False, "r0")
    ledger.need = lambda _: None
    x = Meta((1, rows, LLAMA.hidden_size), LLAMA.dtype)
    ledger.run(wide, (x,), wide.cost(LLAMA, (x,), 0))
    return ledger, op


def test_the_ledger_counts_rows_where_they_are():
    ledger, op = grown(4)
    whole = ledger.kv_bytes
    assert ledger.store_rows("r0", 0, 3) == whole * 3 // 4
    assert ledger.store_rows("r0", 0, 3) == 0
    assert ledger.kv_bytes == whole
    assert ledger.drop_rows("r0", 0) == 3
    assert ledger.kv_bytes == whole // 4
    with pytest.raises(PlanError, match=r"needs all rows of the KV cache r0, and 3 of them are only on disk"):
        x = Meta((1, 1, LLAMA.hidden_size), LLAMA.dtype)
        ledger.run(op, (x,), op.cost(LLAMA, (x,), 1))
    assert ledger.fetch_rows("r0", 0) == whole * 3 // 4
    assert ledger.kv_bytes == whole
    assert ledger.fetch_rows("r0", 0) == 0
    ledger.drop_rows("r0", 0)
    ledger.release("r0")
    assert ledger.kv_bytes == 0
    assert not ledger.on_disk and not ledger.dropped


def test_rows_that_are_not_there_are_neither_stored_nor_dropped():
    ledger, _ = grown(4)
    with pytest.raises(PlanError, match=r"rows 0:5 of layer 0 of the KV cache r0 cannot be stored"):
        ledger.store_rows("r0", 0, 5)
    with pytest.raises(PlanError, match=r"no rows that are in memory and on disk"):
        ledger.drop_rows("r0", 0)


def test_the_rows_of_two_layers_are_read_back_at_a_time():
    demand = Demand(batch=3, sequences=3, rows=4, new_tokens=2, cached_rows=5, offloaded_rows=2)
    # two layers of 3 sequences with 2 rows of keys and values, 4 heads of 8 numbers of 4 bytes
    assert demand.fetched_bytes(GPT2, 4) == 2 * 3 * 2 * (2 * 4 * 8 * 4)
