"""What lists of runs show besides the first figures: parameters, bytes, memory, energy. Old runs get theirs."""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def params_of(request: dict[str, Any]) -> dict[str, Any]:
    work = request.get("workload") or {}
    size = {key: work[key] for key in ("new_tokens", "requests", "prompt_tokens") if work.get(key) is not None}
    params = {key: value for key, value in (request.get("params") or {}).items() if key != "plan"}
    return size | {"seed": request.get("seed", 0)} | params


def figures_of(report: dict[str, Any]) -> dict[str, float]:
    """The figures that a report of any version states plainly; of a finished run alone."""
    found: dict[str, float] = {"dilation": float(report.get("dilation") or 1.0)}
    if (report.get("outcome") or {}).get("kind") != "finished":
        return found
    links, devices = report.get("links") or [], report.get("devices") or []
    found["link_bytes"] = float(sum(link.get("bytes", 0) for link in links))
    found["payload_bytes"] = float(sum(link.get("payload_bytes", 0) for link in links))
    found["peak_memory_bytes"] = float(max((one.get("peak_memory_bytes", 0) for one in devices), default=0))
    if report.get("energy_j"):
        found["energy_j"] = float(report["energy_j"])
    return found


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    runs = apps.get_model("runs", "Run").objects
    for run in runs.only("pk", "request", "report").iterator(chunk_size=20):
        report = run.report or {}
        facts = report.get("correctness") or {}
        runs.filter(pk=run.pk).update(
            params=params_of(run.request or {}),
            figures=figures_of(report) if report else {},
            lossy=facts.get("lossy") if facts.get("checked") else None,
        )


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_need")]

    operations = [
        migrations.AddField(model_name="run", name="figures", field=models.JSONField(default=dict)),
        migrations.AddField(model_name="run", name="lossy", field=models.BooleanField(null=True)),
        migrations.AddField(model_name="run", name="params", field=models.JSONField(default=dict)),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
