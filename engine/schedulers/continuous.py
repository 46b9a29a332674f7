"""Continuous batching: requests join and leave the batch between two tokens.

Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models" (OSDI 2022), section
3.1 (iteration-level scheduling) and Algorithm 1: in the order of arrival, every request of the pool runs one
iteration, up to `max_batch` of them; one is admitted only if there is room for the KV cache of its whole
answer, so that none is ever preempted.
"""

from __future__ import annotations

from engine.schedulers.scheduler import Chunk, Iteration, Job, Scheduler, View


class Continuous(Scheduler):
    """All that run take a step, and the first that wait join them with their whole prompts."""

    name = "continuous"
    title = "Continuous batching (Orca)"
    paper = "Yu et al., Orca, OSDI 2022"
    summary = "Requests join and leave between two tokens; prompts run at once, beside others' tokens."

    def next(self, view: View) -> Iteration:
        reserved = sum(job.most_rows for job in view.running)
        admitted: list[Job] = []
        for job in view.waiting:
            in_work = len(view.running) + len(admitted)
            no_room = view.cache_rows is not None and reserved + job.most_rows > view.cache_rows
            if in_work == view.max_batch or (in_work and no_room):
                break  # those behind do not overtake
            reserved += job.most_rows
            admitted.append(job)
        return Iteration(tuple(Chunk(job.request, job.new_rows) for job in (*view.running, *admitted)))
