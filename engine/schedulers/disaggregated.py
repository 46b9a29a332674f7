"""Disaggregated phases: some devices compute prompts while others compute tokens.

Patel et al., "Splitwise: Efficient Generative LLM Inference Using Phase Splitting" (ISCA 2024), and Zhong et
al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving" (OSDI
2024), section 4: prompts are computed in the order of arrival, one at a time, as a long one occupies its
devices alone; every request whose KV cache has come over takes part in each step over tokens. A request is
admitted only if there is room for the KV cache of its whole answer where tokens are computed, so that none is
ever preempted.
"""

from __future__ import annotations

from engine.schedulers.scheduler import Chunk, Iteration, Scheduler, View


class Disaggregated(Scheduler):
    """Two steps under way at once: the next prompt, and the next token of all that have one."""

    name = "disaggregated"
    title = "Prefill and decode on different devices (Splitwise, DistServe)"
    paper = "Patel et al., Splitwise, ISCA 2024; Zhong et al., DistServe, OSDI 2024"
    summary = "Some devices compute prompts, one after the other, while others compute the tokens of all."
    phases = ("prefill", "decode")

    def next(self, view: View) -> Iteration:
        if view.phase == "decode":
            jobs = [job for job in view.running if job.request not in view.busy]
            return Iteration(tuple(Chunk(job.request, job.new_rows) for job in jobs))
        if not view.waiting or len(view.running) == view.max_batch:
            return Iteration()
        first = view.waiting[0]  # those behind do not overtake
        reserved = sum(job.most_rows for job in view.running)
        if view.running and view.cache_rows is not None and reserved + first.most_rows > view.cache_rows:
            return Iteration()
        return Iteration((Chunk(first.request, first.new_rows),))
