"""Django's name for this app, and what it adds to others."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        from webapp.clusters import model_library
        from webapp.experiments import emulations, points  # noqa: F401  connects what follows a run

        model_library.USES.append(points.designs_since)
