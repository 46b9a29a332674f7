from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0002_models")]

    operations = [
        migrations.AddField(model_name="release", name="uses", field=models.JSONField(default=list)),
    ]
