"""Django's name for this app, whose tables begin with `fleet`, as they did first."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "webapp.jobs"
    label = "fleet"
