"""Freeze an experiment and let it be carried out: start, pause, resume, cancel, retry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from engine.domain import experiment as domain
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.stored import to_document
from engine.domain.stored_experiment import read_experiment
from engine.domain.world import World
from engine.experiments.design.expand import Point, expand
from engine.experiments.results.statements import check_statements
from engine.runs.on_nodes import on_nodes
from webapp.base import budgets
from webapp.base.errors import Conflict
from webapp.experiments import points as stored_points
from webapp.experiments.design import sizes
from webapp.experiments.design.sources import Limits, sources
from webapp.experiments.models import OPEN, Cell, Execution, Experiment
from webapp.experiments.points import announce
from webapp.jobs import answers
from webapp.jobs.models import OVER
from webapp.runs import attempts, quotas
from webapp.runs import services as runs
from webapp.runs.models import Run


def value_of(stored: Experiment | Execution) -> domain.Experiment:
    """The stored experiment as a value. Raises `SpecError` if a newer EdgeLoom stored it in a way that cannot
    be read here.
    """
    return read_experiment(stored.document, f"The experiment {stored}").needed()


# Freezing -----------------------------------------------------------------------------------------
def points_of(value: domain.Experiment) -> tuple[Point, ...]:
    """The points of an experiment. Raises `SpecError` if it is too large for the server or names what is not
    there.
    """
    sizes.check(value)
    check_statements(value)
    return expand(value, sources())


def execution_of(experiment: Experiment) -> Execution:
    """The present version of the experiment, frozen; a planning worker makes it if it is not there.

    Raises `SpecError`, `Conflict`, `Unavailable`.
    """
    frozen = present(experiment)
    if frozen is not None:
        return frozen
    made = answers.ask("plan.freeze_experiment", [experiment.pk], experiment.owner_id or 0, large=True)
    return Execution.objects.get(pk=made["execution"])


def present(experiment: Experiment) -> Execution | None:
    return experiment.executions.filter(version=experiment.version).first()


def freeze(experiment: Experiment) -> Execution:
    """Expand the present version into points and store it, in this process, which is a worker's. Raises
    `SpecError`.

    All points are predicted, in the worlds of the experiment that need no network.
    """
    frozen = present(experiment)
    if frozen is not None:
        return frozen
    value = value_of(experiment)
    cells = predicted_cells(value, points_of(value))
    with transaction.atomic():
        frozen, made = Execution.objects.get_or_create(
            experiment=experiment,
            version=experiment.version,
            defaults={"document": experiment.document, "owner": experiment.owner},
        )
        if made:
            store(frozen, cells)
    return frozen


def predicted_cells(value: domain.Experiment, points: Sequence[Point]) -> list[Cell]:
    """Unsaved cells for the predictions of all points: with a problem, or with a run."""
    limits = Limits()
    cells = []
    for world in [world for world in value.worlds if world in stored_points.PREDICTED] or ["predicted"]:
        made = [
            Cell(
                index=index,
                world=world,
                coordinates=point.coordinates,
                seed=point.seed,
                digest=point.digest,
                problem=point.problem or (limits.problem_of(point.spec, world) if point.spec else ""),
            )
            for index, point in enumerate(points)
        ]
        specs = {points[cell.index].digest: points[cell.index].spec for cell in made if not cell.problem}
        link(made, {digest: spec for digest, spec in specs.items() if spec is not None}, world)
        cells += made
    return cells


def link(cells: Sequence[Cell], specs: dict[str, RunSpec], world: str) -> None:
    """Give every cell without a problem the point of its spec."""
    found = stored_points.wanted(specs, world)
    for cell in cells:
        cell.run = None if cell.problem else found[cell.digest]


def store(execution: Execution, cells: Sequence[Cell]) -> None:
    """Keep new cells; those that are there already stay."""
    for cell in cells:
        cell.execution = execution
    Cell.objects.bulk_create(cells, ignore_conflicts=True)


# What people ask for ------------------------------------------------------------------------------
def start(experiment: Experiment) -> Execution:
    """Predict every point. Raises `SpecError`, `Conflict`."""
    check_share(experiment.owner, but=experiment)
    execution = execution_of(experiment)
    set_state(Execution.objects.filter(pk=execution.pk), "active")
    announce(execution.cells.count())
    return execution


def carry_out(
    experiment: Experiment, digests: Collection[str] | None, world: World = "emulated"
) -> Execution:
    """Emulate the points with these digests, or all, or run them on boards. Raises `SpecError`, `Conflict`,
    also where none of them can run on boards.
    """
    check_share(experiment.owner, but=experiment)
    quotas.check_machine_time(experiment.owner)
    execution = execution_of(experiment)
    chosen = [cell for cell in predicted(execution) if digests is None or cell.digest in digests]
    unknown = set(digests or ()) - {cell.digest for cell in chosen}
    if unknown:
        sentence = f"The experiment has no point {min(unknown)[:40]}: choose among the digests of its rows."
        raise SpecError(sentence, [("digests", "no such point")])
    earlier = set(execution.cells.filter(world=world).values_list("index", flat=True))
    budgets.check_emulated_points(len(earlier | {cell.index for cell in chosen}))
    made = cells_in(world, chosen)
    if world == "nodes" and made and all(cell.problem for cell in made):
        raise SpecError(f"No point can run on boards: {made[0].problem}", [("world", made[0].problem)])
    store_anew(execution, world, made)
    set_state(Execution.objects.filter(pk=execution.pk), "active")
    announce(execution.cells.count())
    return execution


def predicted(execution: Execution) -> QuerySet[Cell]:
    """The cells of its points in the first world that needs no network."""
    first = execution.cells.filter(world__in=stored_points.PREDICTED).values_list("world", flat=True).first()
    return execution.cells.filter(world=first).exclude(digest="").select_related("run")


def store_anew(execution: Execution, world: World, cells: Sequence[Cell]) -> None:
    """Keep new cells of one world, also in place of those that have a problem: it may be gone by now."""
    with transaction.atomic():
        same = execution.cells.filter(world=world, index__in=[cell.index for cell in cells])
        same.exclude(problem="").delete()
        store(execution, cells)


def cells_in(world: World, predicted: Sequence[Cell]) -> list[Cell]:
    """Unsaved cells of the same points, emulated or on boards."""
    limits = Limits()
    cells, specs = [], {}
    for twin in predicted:
        spec = stored_points.spec_of(twin.run) if twin.run else None
        problem = twin.problem or (limits.problem_of(spec, world) if spec else "")
        if spec is not None and not problem:
            specs[twin.digest] = on_nodes(spec) if world == "nodes" else spec
        cells.append(
            Cell(
                index=twin.index,
                world=world,
                coordinates=twin.coordinates,
                seed=twin.seed,
                digest=twin.digest,
                problem=problem,
            )
        )
    link(cells, specs, world)
    return cells


def pause(experiment: Experiment) -> None:
    """Start no more points; those that workers have go on. Raises `Conflict`."""
    if not set_state(under_way(experiment).filter(state="active"), "paused"):
        raise Conflict(f"{experiment} is not under way: there is nothing to pause.")


def resume(experiment: Experiment) -> None:
    """Let the points of a paused experiment be computed again. Raises `Conflict` if it is not paused."""
    check_share(experiment.owner, but=experiment)
    if not set_state(experiment.executions.filter(state="paused"), "active"):
        raise Conflict(f"{experiment} is not paused: there is nothing to resume.")
    announce(stored_points.MOST)


def cancel(experiment: Experiment, by: str) -> None:
    """Start no more points, and stop emulations that nobody else wants. Raises `Conflict`, `Unavailable`."""
    if not set_state(under_way(experiment), "cancelled"):
        raise Conflict(f"{experiment} is not under way: there is nothing to cancel.")
    wanted = Cell.objects.filter(run=OuterRef("pk"), execution__state="active")
    alone = Run.objects.filter(~Exists(wanted), status__in=OPEN, cells__execution__experiment=experiment)
    for run in alone.distinct():
        runs.cancel(run, by)


def delete(experiment: Experiment, by: str) -> None:
    """Delete an experiment with its executions; points are kept, since others may share them. Raises
    `Unavailable`.
    """
    if under_way(experiment).exists():
        cancel(experiment, by)
    experiment.delete()


def set_state(executions: QuerySet[Execution], state: str) -> int:
    return executions.update(state=state)


def retry(experiment: Experiment, stale: bool) -> int:
    """Let the points that failed wait again, and look again at those that were refused; or, if `stale`, let
    those of other versions be computed anew.

    Returns how many points that are.
    """
    check_share(experiment.owner, but=experiment)
    newest = experiment.executions.order_by("-version").first()
    if newest is None:
        raise Conflict(f"{experiment} was not started yet: there is nothing to retry.")
    of_it = stored_points.all_points().filter(cells__execution=newest, status__in=OVER).distinct()
    if stale:
        count = sum(stored_points.renew(point, newest) for point in of_it)
    else:
        count = sum(attempts.anew(point) for point in of_it.filter(result__isnull=True))
        count += sum(accepted(newest, world) for world in stored_points.BY_WORKERS)
    if count:
        set_state(Execution.objects.filter(pk=newest.pk), "active")
        announce(count)
    return count


def accepted(execution: Execution, world: World) -> int:
    """Look again at the cells of this world that have a problem; returns how many have none now."""
    refused = set(execution.cells.filter(world=world).exclude(problem="").values_list("index", flat=True))
    made = (
        cells_in(world, [cell for cell in predicted(execution) if cell.index in refused]) if refused else []
    )
    store_anew(execution, world, made)
    return sum(not cell.problem for cell in made)


# Sharing ------------------------------------------------------------------------------------------
def under_way(experiment: Experiment | None = None) -> QuerySet[Execution]:
    """Executions (of one experiment, or all) with points that wait or are being computed."""
    open_cells = Cell.objects.filter(execution=OuterRef("pk"), run__status__in=OPEN)
    found = Execution.objects.exclude(state="cancelled").filter(Exists(open_cells))
    return found if experiment is None else found.filter(experiment=experiment)


def check_share(owner: User | None, but: Experiment) -> None:
    """Check that this person may have one more experiment under way; raises `Conflict`."""
    others = under_way().filter(owner=owner, state="active", experiment__isnull=False).exclude(experiment=but)
    count = others.values("experiment").distinct().count()
    if count >= budgets.MAX_EXPERIMENTS_UNDER_WAY:
        raise Conflict(
            f"You have {count} experiments under way, and the limit is "
            f"{budgets.MAX_EXPERIMENTS_UNDER_WAY}: pause or cancel one, or wait until one has ended."
        )


# Previews -----------------------------------------------------------------------------------------
def preview(value: domain.Experiment, owner: User) -> Execution:
    """The predictions of what `owner` designs at the moment, which a planning worker makes; the same
    experiment again is the same execution. Raises `SpecError`, `Unavailable`, and `Conflict` if they have
    asked for another one meanwhile.
    """
    document = to_document(value)
    known = previewed(document, owner)
    if known is not None:
        return known
    made = answers.ask("plan.preview_experiment", [document, owner.pk], owner.pk, large=sizes.is_large(value))
    found = Execution.objects.filter(pk=made["execution"]).first()
    if found is None:
        raise Conflict("The experiment was changed meanwhile: the preview of the newest design counts.")
    announce(found.cells.count())  # only this process may write into the queue of points
    return found


def previewed(document: Any, owner: User) -> Execution | None:
    mine = Execution.objects.filter(experiment__isnull=True, owner=owner)
    return next((execution for execution in mine if execution.document == document), None)


def make_preview(value: domain.Experiment, owner: User) -> Execution:
    """Store the preview of an experiment, in this process, which is a worker's; what `owner` designed before
    is dropped. Raises `SpecError`.
    """
    document = to_document(value)
    known = previewed(document, owner)
    if known is not None:
        return known
    cells = predicted_cells(value, points_of(value))
    with transaction.atomic():
        Execution.objects.filter(experiment__isnull=True, owner=owner).delete()
        execution = Execution.objects.create(document=document, owner=owner)
        store(execution, cells)
    return execution
