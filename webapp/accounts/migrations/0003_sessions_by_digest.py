from typing import Any

from django.db import migrations


def end_sessions(apps: Any, schema_editor: Any) -> None:
    """Their keys stand there as they are: they are deleted, and people log in again."""
    apps.get_model("sessions", "Session").objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_audit'),
        ('sessions', '0001_initial'),
    ]

    operations = [migrations.RunPython(end_sessions, migrations.RunPython.noop)]
