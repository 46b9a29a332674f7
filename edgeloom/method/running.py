"""Programs that methods share: what the source computes, pipelines, tensor parallelism, caches under
pressure.
"""

from __future__ import annotations

from engine.strategies.shared.embedding import (
    EMBEDDING_HELP,
    EmbeddingChoice,
    check_choice,
    is_worth_a_table,
    with_table_ops,
    with_tables,
)
from engine.strategies.shared.ends import (
    cache_of,
    embed,
    end_holdings,
    end_slices,
    end_work,
    finish,
    layer_slices,
    result_op,
    tag,
    wanted_rows,
)
from engine.strategies.shared.kv_disk import DiskRows, disk_rows
from engine.strategies.shared.kv_layout import KVLayout
from engine.strategies.shared.kv_pressure import (
    KV_PRESSURE_HELP,
    KVPressure,
    attention_op,
    embed_rows,
    plan_under,
    run_block,
)
from engine.strategies.shared.last_head import (
    HEAD_HELP,
    HeadPlace,
    choose_and_send,
    last_head_ops,
    with_last_head,
)
from engine.strategies.shared.pipeline import (
    Pipeline,
    PipelineLayout,
    StageLayers,
    StagesLayout,
    ends_placement,
    stages_placement,
)
from engine.strategies.shared.split_head import finish_split, with_split_head, with_split_ops
from engine.strategies.shared.tensor_parallel import (
    AllReduceLayout,
    Bounds,
    ShareLayout,
    TensorParallel,
    TensorParallelLayout,
    bounds_plan,
    kv_bytes_of,
    passes_of,
    share_ops,
    shares_placement,
    split_pass,
    split_plan,
)

__all__ = [
    "EMBEDDING_HELP",
    "HEAD_HELP",
    "KV_PRESSURE_HELP",
    "AllReduceLayout",
    "Bounds",
    "DiskRows",
    "EmbeddingChoice",
    "HeadPlace",
    "KVLayout",
    "KVPressure",
    "Pipeline",
    "PipelineLayout",
    "ShareLayout",
    "StageLayers",
    "StagesLayout",
    "TensorParallel",
    "TensorParallelLayout",
    "attention_op",
    "bounds_plan",
    "cache_of",
    "check_choice",
    "choose_and_send",
    "disk_rows",
    "embed",
    "embed_rows",
    "end_holdings",
    "end_slices",
    "end_work",
    "ends_placement",
    "finish",
    "finish_split",
    "is_worth_a_table",
    "kv_bytes_of",
    "last_head_ops",
    "layer_slices",
    "passes_of",
    "plan_under",
    "result_op",
    "run_block",
    "share_ops",
    "shares_placement",
    "split_pass",
    "split_plan",
    "stages_placement",
    "tag",
    "wanted_rows",
    "with_last_head",
    "with_split_head",
    "with_split_ops",
    "with_table_ops",
    "with_tables",
]
