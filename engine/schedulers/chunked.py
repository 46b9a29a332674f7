"""Chunked prefill: prompts pass in parts beside the tokens of others, which wait for no long prompt.

Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve" (OSDI 2024),
Algorithm 3 (stall-free batching): a step has at most `chunk_tokens` rows. First come the tokens of all that
decode, then what is left of prompts under way, then the prompts of new requests. A request is admitted when
there is room for its prompt. When no cache can grow, the request that was admitted last is preempted and
computed again later, as in vLLM and in the simulator Vidur (Agrawal et al., MLSys 2024).
"""

from __future__ import annotations

from engine.schedulers.scheduler import Chunk, Iteration, Job, Scheduler, View


class Chunked(Scheduler):
    """Divides prompts by a budget of rows per step."""

    name = "chunked"
    title = "Chunked prefill (Sarathi)"
    paper = "Agrawal et al., Sarathi-Serve, OSDI 2024"
    summary = "A step has at most so many rows: tokens of those that decode first, then parts of prompts."

    def next(self, view: View) -> Iteration:
        kept, preempted = _with_room(view)
        budget, chunks = view.chunk_tokens, []
        for job in sorted(kept, key=lambda job: not job.decodes):
            rows = min(budget, job.new_rows)
            budget -= rows
            if rows:
                chunks.append(Chunk(job.request, rows))
        if preempted:  # no room for others either
            return Iteration(tuple(chunks), preempted)
        held = sum(job.rows for job in kept)
        for in_work, job in enumerate(view.waiting, len(kept)):
            no_room = view.cache_rows is not None and held + job.rows > view.cache_rows
            if not budget or in_work == view.max_batch or (in_work and no_room):
                break  # those behind do not overtake
            rows = min(budget, job.new_rows)
            budget, held = budget - rows, held + job.rows
            chunks.append(Chunk(job.request, rows))
        return Iteration(tuple(chunks), preempted)


def _with_room(view: View) -> tuple[tuple[Job, ...], tuple[int, ...]]:
    """The running requests whose caches may grow, and those that are preempted for them, the last first. A
    cache has as many rows after a request's next token as it has tokens so far.
    """
    kept, preempted = list(view.running), []
    while len(kept) > 1 and view.cache_rows is not None and sum(job.rows for job in kept) > view.cache_rows:
        preempted.append(kept.pop().request)
    return tuple(kept), tuple(preempted)
