"""Results have the figures under the names of reports, which experiments called otherwise before."""

from __future__ import annotations

from typing import Any

from django.db import migrations

NAMES = {
    "total_s": "latency_s",
    "first_token_s": "ttft_s",
    "per_token_s": "tpot_s",
    "bytes": "link_bytes",
    "predicted_total_s": "predicted_latency_s",
    **{f"first_token_{of}_s": f"ttft_{of}_s" for of in ("p50", "p95", "p99")},
    **{f"per_token_{of}_s": f"tpot_{of}_s" for of in ("p50", "p95", "p99")},
}


def rename(apps: Any, schema_editor: Any) -> None:
    computations = apps.get_model("experiments", "Computation").objects
    for computation in computations.exclude(result=None).only("result").iterator():
        metrics = computation.result.get("metrics", {})
        computation.result["metrics"] = {NAMES.get(name, name): value for name, value in metrics.items()}
        computation.save(update_fields=["result"])


class Migration(migrations.Migration):
    dependencies = [("experiments", "0003_fence")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
