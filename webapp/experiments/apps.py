"""Django's name for this app, and its kind of job."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"
    label = "experiments"

    def ready(self) -> None:
        from webapp.clusters import model_library
        from webapp.experiments import computations, emulations  # noqa: F401  connects what follows a run
        from webapp.experiments.models import Computation
        from webapp.jobs import queue

        queue.register(Computation, computations.settle)
        model_library.USES.append(computations.designs_since)
