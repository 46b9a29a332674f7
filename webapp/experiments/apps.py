"""Django's name for this app."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        from webapp.experiments import emulations  # noqa: F401  connects what follows the end of a run
