"""Cases worked out by hand with the rules of Orca, Sarathi-Serve and the simulator Vidur: who is admitted in
which step, and how many rows run.
"""

import pytest

from engine.schedulers.chunked import Chunked
from engine.schedulers.continuous import Continuous
from engine.schedulers.disaggregated import Disaggregated
from engine.schedulers.fcfs import Fcfs
from engine.schedulers.registry import SCHEDULERS
from engine.schedulers.scheduler import Chunk, DeviceMemory, Iteration, Job, View, complaint_about


def played(scheduler, prompts, max_batch, chunk_tokens=0, cache_rows=None, steps=100):
    """Steps as {request: rows}, each with who was preempted before it; all requests are there at the start.

    `prompts` are pairs: tokens of the prompt and of the answer.
    """
    memory = () if cache_rows is None else (DeviceMemory("d0", cache_rows * 4, 4),)
    waiting = [Job(index, rows, 0, new, 0.0) for index, (rows, new) in enumerate(prompts)]
    running, found = [], []
    while (waiting or running) and len(found) < steps:
        view = View(0.0, tuple(waiting), tuple(running), max_batch, chunk_tokens, memory)
        iteration = scheduler.next(view)
        assert complaint_about(iteration, view) is None
        found.append((dict(iteration.chunks), iteration.preempted))
        back = [job._replace(cached=0) for job in running if job.request in iteration.preempted]
        rows = dict(iteration.chunks)
        running = [job for job in running if job not in back and job.request not in iteration.preempted]
        running += [job for job in waiting if job.request in rows]
        waiting = back + [job for job in waiting if job.request not in rows]
        after = []
        for job in running:
            cached = job.cached + rows.get(job.request, 0)
            answers = cached == job.rows
            after.append(job._replace(cached=cached, rows=job.rows + answers, left=job.left - answers))
        running = [job for job in after if job.left]
    return found


def test_orca_fills_the_place_of_whoever_leaves_in_the_next_iteration():
    # x1 and x2 fill the batch of 2; x1 ends after 2 tokens, x3 joins at x2's third token (Orca, fig. 5)
    steps = played(Continuous(), [(2, 2), (3, 4), (4, 1)], max_batch=2)
    assert [rows for rows, _ in steps] == [
        {0: 2, 1: 3},
        {0: 1, 1: 1},
        {1: 1, 2: 4},
        {1: 1},
    ]


def test_orca_reserves_room_for_a_whole_answer_and_nobody_overtakes():
    # rows at the end: 2+4-1 = 5, 4+3-1 = 6, 1+1-1 = 1; of 10 rows the first takes 5, so the second waits, and
    # the third, which would fit, waits behind it (Orca, Algorithm 1: it breaks at the first without room)
    steps = played(Continuous(), [(2, 4), (4, 3), (1, 1)], max_batch=8, cache_rows=10)
    assert [rows for rows, _ in steps] == [{0: 2}, {0: 1}, {0: 1}, {0: 1}, {1: 4, 2: 1}, {1: 1}, {1: 1}]
    assert not any(preempted for _, preempted in steps)


def test_sarathi_coalesces_decodes_with_parts_of_prompts_up_to_the_budget():
    # budget 4: the prompt of 3 leaves 1 row for the second prompt (10); then its token comes first (1 + 3),
    # and again, until that prompt has passed: 1 + 3 + 3 + 3 = 10 (Sarathi-Serve, Algorithm 3)
    steps = played(Chunked(), [(3, 5), (10, 2)], max_batch=4, chunk_tokens=4)
    assert [rows for rows, _ in steps] == [
        {0: 3, 1: 1},
        {0: 1, 1: 3},
        {0: 1, 1: 3},
        {0: 1, 1: 3},
        {0: 1, 1: 1},
    ]


def test_sarathi_preempts_the_last_admitted_when_no_cache_can_grow_and_computes_it_again():
    # 6 rows of memory, prompts of 2 and 3: after step 1 there are 3 + 4 = 7 tokens; the second is preempted,
    # keeps its one token and waits with 4 rows until the first is done (2 + 3 - 1 = 4 rows, and 4 + 4 > 6)
    steps = played(Chunked(), [(2, 3), (3, 2)], max_batch=4, chunk_tokens=8, cache_rows=6)
    assert steps == [
        ({0: 2, 1: 3}, ()),
        ({0: 1}, (1,)),
        ({0: 1}, ()),
        ({1: 4}, ()),
    ]


def test_disaggregated_phases_take_the_next_prompt_and_all_tokens_that_no_step_under_way_has():
    # request 0 decodes, the prompt of 1 is under way, 2 and 3 wait; of 12 rows 0 takes 3+3-1 = 5 in the end
    # and 1 takes 4+1-1 = 4, so 2, with 3+2-1 = 4, waits for one of them, and 3, which would fit, behind it
    decoding, prompt = Job(0, 4, 3, 2, 0.0), Job(1, 4, 0, 1, 0.0)
    waiting = (Job(2, 3, 0, 2, 0.0), Job(3, 1, 0, 1, 0.0))
    view = View(0.0, waiting, (decoding, prompt), 3, 0, (DeviceMemory("d1", 12 * 4, 4),), "decode")
    assert Disaggregated().next(view._replace(busy=frozenset({1}))) == Iteration((Chunk(0, 1),))
    prefill = view._replace(phase="prefill", busy=frozenset({0}))
    assert Disaggregated().next(prefill) == Iteration()
    assert Disaggregated().next(prefill._replace(running=(decoding,))) == Iteration((Chunk(2, 3),))
    assert Disaggregated().next(prefill._replace(memory=(), max_batch=2)) == Iteration()
    assert Disaggregated().next(prefill._replace(memory=())) == Iteration((Chunk(2, 3),))


def test_first_come_first_served_takes_those_of_one_shape_and_asks_again_when_all_are_answered():
    jobs = tuple(Job(index, rows, 0, 2, 0.0, (rows, 0, 2)) for index, rows in enumerate((5, 7, 5, 5)))
    view = View(0.0, jobs, (), 2)
    assert Fcfs().next(view) == Iteration((Chunk(0, 5), Chunk(2, 5)))
    assert Fcfs().next(view._replace(running=jobs[:1])) == Iteration()


@pytest.mark.parametrize("scheduler", [one for one in SCHEDULERS if not one.answers_whole])
def test_a_request_too_long_for_the_memory_is_admitted_alone_and_the_run_says_where_it_ends(scheduler):
    room, phase = (DeviceMemory("d0", 4, 4),), scheduler.phases[0]
    view = View(0.0, (Job(0, 9, 0, 1, 0.0), Job(1, 1, 0, 1, 0.0)), (), 4, 9, room, phase)
    assert [chunk.request for chunk in scheduler.next(view).chunks] == [0]


@pytest.mark.parametrize(
    ("iteration", "words"),
    [
        (Iteration((Chunk(7, 1),)), "neither waits nor runs"),
        (Iteration((Chunk(0, 4),)), "runs 4 rows of request 0, which has 3 new ones"),
        (Iteration((Chunk(0, 1), Chunk(0, 1))), "two chunks of request 0"),
        (Iteration((), (0,)), "preempts request 0, which does not run"),
        (Iteration((Chunk(0, 3), Chunk(1, 3))), "has 3 requests in work, and max_batch is 2"),
    ],
)
def test_what_no_scheduler_may_do_is_said_in_words(iteration, words):
    waiting = (Job(0, 3, 0, 1, 0.0), Job(1, 3, 0, 1, 0.0))
    view = View(0.0, waiting, (Job(2, 5, 4, 2, 0.0),), 2)
    assert words in complaint_about(iteration, view)


@pytest.mark.parametrize(
    ("phase", "iteration", "words"),
    [
        ("decode", Iteration((Chunk(0, 3),)), "runs rows of request 0 in a step of the phase decode"),
        ("prefill", Iteration((Chunk(1, 1),)), "runs rows of request 1 in a step of the phase prefill"),
        ("prefill", Iteration((Chunk(0, 2),)), "divides the prompt of request 0"),
        ("decode", Iteration((Chunk(2, 1),)), "request 2, which is in a step that is under way"),
        ("prefill", Iteration((), (2,)), "request 2, which is in a step that is under way"),
    ],
)
def test_what_no_scheduler_may_do_in_a_phase_is_said_in_words(phase, iteration, words):
    running = (Job(1, 5, 4, 2, 0.0), Job(2, 5, 4, 2, 0.0))
    view = View(0.0, (Job(0, 3, 0, 1, 0.0),), running, 4, 0, (), phase, frozenset({2}))
    assert words in complaint_about(iteration, view)
