"""The world `simulated` is called `predicted`; documents of experiments are read with that name."""

from __future__ import annotations

from typing import Any

from django.db import migrations

BEFORE, NOW = "simulated", "predicted"


def rename(apps: Any, schema_editor: Any) -> None:
    apps.get_model("experiments", "Cell").objects.filter(world=BEFORE).update(world=NOW)
    computations = apps.get_model("experiments", "Computation").objects
    computations.filter(world=BEFORE).update(world=NOW)
    for computation in computations.filter(result__world=BEFORE).only("result").iterator():
        computation.result["world"] = NOW
        computation.save(update_fields=["result"])


class Migration(migrations.Migration):
    dependencies = [("experiments", "0004_names_of_figures")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
