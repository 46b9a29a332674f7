"""First come, first served: a request is admitted when those before it are answered."""

from __future__ import annotations

from engine.schedulers.scheduler import Chunk, Iteration, Scheduler, View


class Fcfs(Scheduler):
    """Takes the first of those that wait, with others that are as long, and answers them to the end."""

    name = "fcfs"
    title = "First come, first served"
    summary = "The cluster answers one batch of equally long requests to the end, then takes the next."
    answers_whole = True

    def next(self, view: View) -> Iteration:
        if view.running or not view.waiting:
            return Iteration()
        alike = [job for job in view.waiting if job.shape == view.waiting[0].shape]
        return Iteration(tuple(Chunk(job.request, job.new_rows) for job in alike[: view.max_batch]))
