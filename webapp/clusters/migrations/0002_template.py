"""Which clusters are templates: the shipped ones that nobody owns."""

from typing import Any

from django.db import migrations, models

SHIPPED = (
    "lab-3",
    "lab-4",
    "standby-5",
    "scarce-3",
    "helpers-4",
    "equal-6",
    "voltage-6",
    "mcu-8",
    "mcu-64",
)


def mark(apps: Any, schema_editor: Any) -> None:
    """Not those that somebody has edited: administrators may go on with them."""
    cluster = apps.get_model("clusters", "Cluster")
    cluster.objects.filter(owner=None, name__in=SHIPPED, version=1).update(template=True)


class Migration(migrations.Migration):
    dependencies = [("clusters", "0001_initial")]

    operations = [
        migrations.AddField("Cluster", "template", models.BooleanField(default=False)),
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
