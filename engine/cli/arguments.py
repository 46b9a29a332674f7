"""Parse the arguments that `run` and `predict` share, and make a RunSpec of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Literal

from engine.cli.command import Environment
from engine.cli.compare_command import read_report
from engine.cli.workload_arguments import add_workload_arguments, workload_fields
from engine.domain.cluster import ClusterSpec
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.model import LIKELY_ACCEPTANCE, ModelSpec, in_bits, in_int8, with_draft
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.stored import read_plan, read_spec, schema_of
from engine.domain.workload import Workload
from engine.experiments.design.written_out import is_file as has_ending
from engine.models.catalogue import resolve
from engine.recorded.files import parse_name
from engine.recorded.scenarios import each_file, read_scenario
from engine.strategies.expert_parallel.report import ExpertsReport
from engine.strategies.outside import is_file
from engine.strategies.registry import named, origin_of, strategy
from engine.strategies.shared.verify import DraftReport


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that describe a run: `run` and `predict` take the same ones."""
    parser.add_argument(
        "cluster",
        nargs="?",
        metavar="CLUSTER",
        help=f"name or cluster file: see `{COMMAND} list clusters` and `{COMMAND} show`",
    )
    parser.add_argument(
        "--spec", metavar="FILE", help="a whole run as JSON, or the run of a report: in place of all others"
    )
    parser.add_argument(
        "--showcase",
        metavar="NAME[/OTHER]",
        help="a showcase's run, or one of those beside it, in place of all others: see "
        f"`{COMMAND} list showcases`",
    )
    parser.add_argument("--model", metavar="NAME|DIR", help="a catalogue name or a directory")
    parser.add_argument("--weights", metavar="random|DIR", help="random from the seed, or a directory's")
    parser.add_argument(
        "--weight-bits",
        type=int,
        choices=(8, 4),
        help="store all matrices in so many bits; transformers computes with the rounded numbers, too",
    )
    parser.add_argument(
        "--activation-bits",
        type=int,
        choices=(8,),
        help="with --weight-bits 8: products take in numbers of 8 bits, too, and multiply whole numbers "
        "(methods single and mcu)",
    )
    parser.add_argument(
        "--likely-experts",
        metavar="M|REPORT",
        help="predict a mixture of experts as if rows chose evenly among M experts of each layer (all), or "
        "as in a run of expert_parallel, by its report (--json): --set by=load places experts by that",
    )
    parser.add_argument(
        "--draft-model",
        metavar="NAME|DIR",
        help="a smaller model of the same vocabulary, which drafts tokens in a method that drafts",
    )
    parser.add_argument(
        "--draft-weights", metavar="random|DIR", help="those of the draft model, as --weights are the model's"
    )
    parser.add_argument(
        "--likely-acceptance",
        metavar="SHARE|REPORT",
        help="predict as if a drafted token were the model's own with this probability "
        f"({LIKELY_ACCEPTANCE}), or as often as in a run that drafted, by its report (--json)",
    )
    parser.add_argument(
        "--strategy", metavar="NAME|FILE.py:CLASS", help="how the work is split; a file is run as it stands"
    )
    parser.add_argument(
        "--set",
        dest="params",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of the strategy; repeatable",
    )
    add_workload_arguments(parser)
    parser.add_argument(
        "--scenario",
        metavar="FILE[@LINK[,OPTION=…]]|TRACE@LINK",
        help="timed changes: TOML, JSON, a run's report, a CSV trace of rates; an example trace, as "
        "walk@desk--hub; or a file of Mahimahi, HSDPA, FCC, UCC 5G or Lumos5G and the link that gets its "
        "rates; options: direction, upload, only, step_s, each_s, from_s, until_s; several files with ' + ' "
        "between",
    )
    parser.add_argument(
        "--failover",
        choices=("replan", "stop"),
        default="replan",
        help="after a device fails: plan again for the others, or end the run",
    )
    parser.add_argument(
        "--silence",
        type=float,
        default=2.0,
        metavar="S",
        dest="silence_s",
        help="virtual seconds of silence after which a device counts as failed (2)",
    )
    parser.add_argument(
        "--compute-model",
        choices=("roofline", "serial", "measured", "flops"),
        help="overrides the compute model of every device",
    )
    parser.add_argument(
        "--dilation",
        type=_dilation,
        default="auto",
        metavar="auto|native|D",
        help="wall seconds per virtual second; native switches pacing off",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="decides all that is random: weights, prompts, arrivals, drawn tokens (0)",
    )
    parser.add_argument("--name", default="", help="the run's name in reports and comparisons")
    add_json_argument(parser)


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE|-", help="write the report as JSON; - is standard output")


def run_spec_of(args: argparse.Namespace) -> RunSpec:
    """The RunSpec that the arguments describe; raises `SpecError` naming the argument or file."""
    if args.spec is not None:
        names_code = args.strategy is not None and is_file(args.strategy)
        _alone(args, ("spec", "strategy") if names_code else ("spec",), f"--spec {args.spec}")
        return _with_its_method(args, _spec_in(Path(args.spec)))
    if args.showcase is not None:
        _alone(args, ("showcase",), f"--showcase {args.showcase}")
        return _spec_of_showcase(args.showcase, args.environment)
    for value, name in ((args.cluster, "CLUSTER"), (args.model, "--model"), (args.strategy, "--strategy")):
        if value is None:
            raise SpecError(
                f"{name} is missing: give CLUSTER, --model and --strategy, or --spec FILE, or "
                "--showcase NAME."
            )
    environment: Environment = args.environment
    cluster = environment.load_cluster(args.cluster)
    model, weights = resolve(args.model, args.weights)
    model = in_bits(model, args.weight_bits)
    if args.activation_bits:
        model = in_int8(model)
    if args.likely_experts is not None:
        fields = model.model_dump(mode="json") | _choices(args.likely_experts)
        model = ModelSpec.parse(fields, "--likely-experts")
    draft, draft_weights = (
        resolve(args.draft_model, args.draft_weights) if args.draft_model else (None, WeightsRef())
    )
    if draft is None and args.draft_weights is not None:
        raise SpecError(f"--draft-weights {args.draft_weights}: there is no draft model: add --draft-model.")
    likely = None if args.likely_acceptance is None else _likely_acceptance(args.likely_acceptance)
    model = with_draft(model, draft, likely)
    params = with_plan_of_file(parse_assignments(args.params), cluster, model)
    chosen = named(args.strategy)
    if draft is None and likely is not None and not chosen.drafts and origin_of(chosen.name) is None:
        raise SpecError(
            f"--likely-acceptance {args.likely_acceptance}: {chosen.name} drafts no tokens, and there is no "
            "draft model: add --draft-model, or choose a method that drafts (--strategy speculative)."
        )
    chosen.Params.parse(params, f"--set of strategy {args.strategy}")
    scenario = Scenario()
    if args.scenario:
        scenario = _scenario_of(args.scenario, environment)
        _check_scenario(scenario, args.scenario, cluster)
    workload = Workload.parse(workload_fields(args, model, weights), "command line")
    spec: RunSpec = RunSpec.parse(
        {
            "name": args.name,
            "cluster": cluster,
            "model": model,
            "weights": weights,
            "draft_weights": draft_weights,
            "workload": workload,
            "strategy": chosen.name,
            "method": origin_of(chosen.name),
            "params": params,
            "scenario": scenario,
            "failover": args.failover,
            "silence_s": args.silence_s,
            "compute_model": args.compute_model,
            "dilation": args.dilation,
            "seed": args.seed,
        },
        "command line",
    )
    return spec


def _with_its_method(args: argparse.Namespace, spec: RunSpec) -> RunSpec:
    """A whole run. Code of a file is run only if `--strategy` names the file. Raises `SpecError`."""
    where, method = f"--spec {args.spec}", spec.method
    if method is None or not method.file:
        _alone(args, ("spec",), where)
        return spec
    if args.strategy is None:
        raise SpecError(
            f"{where}: its method is code of a file, and no file is run unless it is named: look at it, and "
            f"add --strategy {method}."
        )
    chosen = named(args.strategy)
    return spec.model_copy(update={"strategy": chosen.name, "method": origin_of(chosen.name)})


def _alone(args: argparse.Namespace, given: tuple[str, ...], where: str) -> None:
    """Check that no other argument that describes a run stands beside `given`; raises `SpecError`."""
    plain = argparse.ArgumentParser()
    add_run_arguments(plain)
    for name, default in vars(plain.parse_args([])).items():
        if name not in (*given, "json") and getattr(args, name) != default:
            raise SpecError(f"{where}: it has a whole run, so {name} cannot be given, too: leave one out.")


def _spec_of_showcase(text: str, environment: Environment) -> RunSpec:
    name, _, other = text.partition("/")
    return environment.showcase(name).run_called(other)


def _spec_in(path: Path) -> RunSpec:
    """The RunSpec in a file, or that of the report in it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"--spec {path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SpecError(f"--spec {path}: is no JSON: {error}.") from error
    if not isinstance(document, dict):
        raise SpecError(f"--spec {path}: expected a JSON object with the fields of a run.")
    if isinstance(document.get("spec"), dict):
        document = {"schema": schema_of(document), **document["spec"]}
    return read_spec(document, str(path)).needed()


def _choices(text: str) -> dict[str, Any]:
    """The fields of a model that say what rows choose: a number, or the record in a report's file. Raises
    `SpecError`.
    """
    if text.isdecimal():
        return {"likely_experts": int(text)}
    method = read_report(Path(text)).method
    if not isinstance(method, ExpertsReport) or not method.likely_experts:
        raise SpecError(
            f"--likely-experts {text}: expected a number, or the report of a run of a mixture with "
            "expert_parallel, whose prompt has several tokens."
        )
    return {"likely_experts": method.likely_experts, "expert_load": list(method.load)}


def _likely_acceptance(text: str) -> float:
    """A share, or that of the report in a file. Raises `SpecError`."""
    try:
        return float(text)
    except ValueError:
        method = read_report(Path(text)).method
    if not isinstance(method, DraftReport):
        raise SpecError(
            f"--likely-acceptance {text}: expected a share from 0 to 1, or the report of a run that drafted "
            "tokens (speculative)."
        )
    return method.likely_acceptance


def parse_assignments(pairs: list[str]) -> dict[str, Any]:
    """`["ratio=even", "shares=[2,1]"]` → `{"ratio": "even", "shares": [2, 1]}`; values are JSON or text."""
    params: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SpecError(f"--set {pair}: expected KEY=VALUE.", [("params", "expected KEY=VALUE")])
        if key in params:
            raise SpecError(f"--set {pair}: {key} is set twice: keep one.", [(f"params.{key}", "set twice")])
        try:
            params[key] = json.loads(value)
        except json.JSONDecodeError:
            params[key] = value
    return params


def with_plan_of_file(params: dict[str, Any], cluster: ClusterSpec, model: ModelSpec) -> dict[str, Any]:
    """The parameters with `plan=FILE` read: a plan made by hand, or a report or plan that is written as if it
    were one.

    Raises `SpecError`, and `PlanError` for a plan of a strategy that takes none made by hand.
    """
    if not isinstance(params.get("plan"), str):
        return params
    return {**params, "plan": plan_in_file(Path(params["plan"]), cluster, model, "--set plan=")}


def plan_in_file(file: Path, cluster: ClusterSpec, model: ModelSpec, before: str) -> dict[str, Any]:
    """The parameter `plan` that a file has. Raises as `with_plan_of_file` does; `before` stands before the
    file in errors.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{before}{file}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SpecError(f"{before}{file}: is no JSON: {error}.") from error
    if isinstance(document, dict) and isinstance(document.get("plan"), dict):
        document = {"schema": schema_of(document), **document["plan"]}
    if isinstance(document, dict) and "layout" in document:
        plan = read_plan(document, str(file)).needed()
        document = strategy(plan.strategy).by_hand(cluster, model, plan).to_json()
    if not isinstance(document, dict):
        raise SpecError(f'{before}{file}: has no plan: expected {{"devices": [{{"device": …}}]}}.')
    return document


def _scenario_of(name: str, environment: Environment) -> Scenario:
    """The changes in a file or files, or of an example trace: a file has an ending, or exists."""
    has_files = has_ending(name) or any(parse_name(part).path.exists() for part in each_file(name))
    return read_scenario(name) if has_files else environment.scenario(name)


def _check_scenario(scenario: Scenario, where: str, cluster: ClusterSpec) -> None:
    try:
        scenario.check(cluster)
    except SpecError as error:
        raise SpecError(f"{where}, {error}", fields=error.fields) from error


def _dilation(text: str) -> float | Literal["auto", "native"]:
    if text in ("auto", "native"):
        return text  # type: ignore[return-value]
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto, native nor a positive number")
    return value
