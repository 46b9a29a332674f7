"""What a share of heads and columns needs in memory, as the search for groups and shares counts it."""

import pytest

from engine.domain.plan import Slice
from engine.ops.layout import kv_heads
from engine.ops.sizes import weight_bytes
from engine.strategies.planner.all_reduce import AllReduceSearch
from engine.strategies.registry import strategy
from engine.strategies.shared.demand import demand_of, working_bytes
from engine.strategies.shared.tensor_parallel import share_ops
from tests.support.small_cases import BERT, GPT2, LLAMA, spec_of, star

CLUSTER = star([1e10, 2e10])


@pytest.mark.parametrize(
    ("model", "kept"),
    [(BERT, {}), (GPT2, {}), (LLAMA, {"evicted_rows": 5}), (GPT2, {"offloaded_rows": 6})],
    ids=["encoder", "all-rows-in-memory", "recomputed-rows", "rows-on-disk"],
)
def test_a_share_needs_its_weights_its_cache_and_what_its_largest_operation_works_with(model, kept):
    demand = demand_of(model, spec_of("megatron", model, CLUSTER).workload, True)._replace(**kept)
    search = AllReduceSearch(strategy("megatron"), CLUSTER, model, demand, "auto")
    for heads in range(model.num_heads + 1):
        first, last = kv_heads(model, 0, heads)
        for columns in search.cuts:
            pieces = (
                Slice(layer=0, part="attention", axis="heads", start=0, stop=heads),
                Slice(layer=0, part="ffn", axis="columns", start=0, stop=columns),
            )
            layer_bytes = sum(weight_bytes(model, piece) for piece in pieces)
            layer_bytes += demand.kv_bytes(model, last - first)
            works_bytes = working_bytes(model, share_ops(model, demand, (0, heads), (0, columns)))
            assert search.share_bytes(heads, columns) == (model.num_layers * layer_bytes, works_bytes)
            assert search.need_bytes(1, heads, columns) == model.num_layers * layer_bytes + works_bytes
