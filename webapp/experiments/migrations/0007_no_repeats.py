from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('experiments', '0006_method'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='computation',
            name='asked_dilation',
        ),
        migrations.RemoveField(
            model_name='computation',
            name='repeats',
        ),
    ]
