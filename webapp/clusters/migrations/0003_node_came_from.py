from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0002_node'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='came_from',
            field=models.CharField(blank=True, default='', max_length=64),
            preserve_default=False,
        ),
    ]
