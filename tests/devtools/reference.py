"""The entries of the programming interface in docs/reference, from signatures and docstrings.

`./loom docs` writes them. An entry is a heading, the signature as it is written, what the docstring says, and
of a class its fields and methods. What a base that has an entry of its own says already, is not repeated.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, ForwardRef, NamedTuple

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from engine.domain.kinded import Kinded
from engine.domain.units import unit_of_field
from engine.domain.values import Value
from engine.ops.operation import Operation
from tests.devtools.public_api import MODULES

OURS = ("engine.", "edgeloom", "topologies")
COLUMNS = 100
"""Characters of a line of code."""

COMMON: Mapping[str, str] = {
    "algorithm": "how the collective is done, by one of the names that its entry lists",
    "axis": "what [start, stop) counts: an `Axis`",
    "batch": "B, sequences that pass together",
    "bias": "whether the output bias is added: by one device of a group",
    "bits": "bits per number of the matrices; 0: the model's own",
    "bounds": "where pieces begin and the last one ends: member i has [bounds[i], bounds[i + 1])",
    "by": "in proportion to what",
    "cache": "name of a KV cache, `cache_of(step)`; None: nothing is kept",
    "cached": "rows that are in the KV cache before the operation",
    "cluster": "the run's `ClusterSpec`",
    "columns": "feed-forward columns, half-open [start, stop) or a number for each member",
    "ctx": "what `forward` got",
    "demand": "what the plan is for, `demand_of(…)`",
    "device": "rank or name of a device, or a `DeviceSpec`, as its type says",
    "devices": "the devices, by rank where they are numbers",
    "dim": "number of a dimension, from 0",
    "done": "called at the source with each step and its result",
    "dst": "rank of the receiver",
    "embedding": "who embeds tokens, an `EmbeddingChoice`",
    "ends": "what the source has besides layers, `ends_placement(name, cluster, model)`",
    "flops": "floating-point operations",
    "generates": "whether tokens are chosen, so that there are decode steps",
    "group": "ranks of the members, in order",
    "heads": "query heads: their numbers, half-open [start, stop), or a number for each member",
    "how": "the algorithm of sums, `auto` where it may be chosen",
    "kind": "which of several types a stored value has",
    "layer": "number of a layer from 0; -1 outside the layers",
    "layers": "numbers of layers, or how many",
    "link": "a `LinkSpec`, or the index of a link in `cluster.links`",
    "method": "a method: its name, FILE.py:CLASS, a class or an object",
    "model": "the run's `ModelSpec`",
    "name": "the method's name, for its plan and its refusals, or what the thing is called",
    "normed": "whether the input has been through the part's `Norm`",
    "num_kv_heads": "KV heads of a device or a model",
    "op": "an operation",
    "ops": "operations with the sizes of their inputs, by rank where it is a mapping",
    "paper": "the publication in one line, empty if there is none",
    "params": "the method's parameters",
    "part": "part of a layer or of the model's ends",
    "piece": "a `Slice` of the weights",
    "placement": "what devices hold and compute",
    "plan": "the plan that `forward` got, or that is being made",
    "rank": "a device's place in `cluster.devices`, from 0",
    "ranks": "places of devices in `cluster.devices`, from 0",
    "report": "the `RunReport` of a run",
    "request": "number of a request, from 0; -1: of none",
    "requests": "requests, or their numbers from 0",
    "root": "rank of the one that gives or gets all",
    "rows": "new rows T, tokens of one sequence",
    "seed": "of all that is drawn at random; the same seed draws the same",
    "shares": "what each device gets of every unit",
    "sizes": "rows of each member, in the group's order",
    "source": "name of the device that asks; of numbers: where they are from",
    "src": "rank of the sender",
    "stages": "`Stage` values in the order of computation",
    "start": "first of a half-open range [start, stop)",
    "step": "the `Step` that `forward` got; of a unit: the pieces in which it is divided",
    "steps": "the `Step` values that `forward_all` got, in order",
    "stop": "end of a half-open range [start, stop), not in it",
    "strategy": "name of the method",
    "summary": "what the method does, in one sentence",
    "tag": "name of the messages, the same at sender and receiver, and unique in a step",
    "title": "what a person reads",
    "token": "number of a token of the answer, from 0; -1: of none",
    "tokens": "token ids [B, T] at the source, None elsewhere",
    "unit": "what is divided, or the SI unit of a number",
    "where": "what messages call the place of the data: a file's name, a field",
    "workload": "the run's `Workload`",
}
"""Arguments and fields that mean the same wherever they stand; a docstring says where they mean more."""


def common_table() -> str:
    """What arguments mean that mean the same wherever they stand."""
    rows = [f"| `{name}` | {said} |" for name, said in sorted(COMMON.items())]
    return "\n".join(["| argument | what it is |", "| --- | --- |", *rows]) + "\n"


def reference(module: str) -> str:
    """The entries of all public names of a module, in the order of the alphabet without regard to case."""
    found = import_module(module)
    names = sorted(found.__all__, key=str.lower)
    return _spaced("\n".join(entry(name, getattr(found, name), module) for name in names))


def parts_reference(root: type[BaseModel]) -> str:
    """The entries of the values of its module that a value is made of, the outermost first."""
    found, waiting = [root], [root]
    while waiting:
        fields = waiting.pop(0).model_fields.values()
        named = {part for field in fields for part in _types_in(field.annotation)}
        new = [kind for kind in named if kind.__module__ == root.__module__ and kind not in found]
        new.sort(key=lambda kind: inspect.getsourcelines(kind)[1])
        found += new
        waiting += new
    return _spaced("\n".join(entry(kind.__name__, kind) for kind in found[1:]))


def _types_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _types_in(part)


def _spaced(text: str) -> str:
    once = re.sub(r"\n{3,}", "\n\n", text).strip()
    return f"\n{once}\n\n"


def entry(name: str, thing: Any, module: str = "") -> str:
    """The entry of one public name of a module."""
    function = getattr(thing, "__wrapped__", thing)
    if inspect.isfunction(function):
        prefix = "async " if inspect.iscoroutinefunction(function) else ""
        return f"### `{name}`\n\n{code(f'{prefix}{name}{signature(function)}')}\n{text(function)}"
    if inspect.isclass(thing) and thing.__module__.startswith(OURS):
        return f"### `{name}`\n\n{''.join(_of_class(name, thing))}"
    value, said = assigned(module, name)
    return f"### `{name}`\n\n{code(f'{name} = {value}')}\n{said}\n"


class Field(NamedTuple):
    """A line of a class's table."""

    name: str
    type: str
    default: str
    said: str


def _of_class(name: str, kind: type) -> Iterator[str]:
    bases = [base for base in kind.__mro__[1:] if base in public_classes()]
    if made := constructor(kind):
        yield code(f"{name}{made}") + "\n"
    yield text(kind)
    if bases and bases[0] is not Value:
        yield f"\nDerives from `{bases[0].__name__}`.\n"
    if shapes := getattr(kind, "takes", "") if issubclass(kind, Operation) else "":
        yield f"\nTakes {shown_shapes(shapes)}.\n"
    known = {member for base in bases for member in vars(base)}
    if rows := [row for row in fields(kind) if row.name not in known or row.said]:
        yield "\n" + fields_table(rows)
    for member, function in methods(kind).items():
        if member not in known or (inspect.getdoc(function) and vars(kind).get(member)):
            head = f"{member}{signature(function)}" if inspect.isroutine(function) else member
            prefix = "async " if inspect.iscoroutinefunction(function) else ""
            yield f"\n{code(f'{prefix}{name}.{head}')}\n{text(function)}"


def fields_table(rows: Sequence[Field]) -> str:
    """Without the columns that would be empty."""
    columns = {
        "field": [f"`{row.name}`" for row in rows],
        "type": [f"`{row.type}`" for row in rows],
        "default": [row.default for row in rows],
        "unit": [unit_of_field(row.name) or "" for row in rows],
        "what it is": [row.said or COMMON.get(row.name, "") for row in rows],
    }
    kept = {head: cells for head, cells in columns.items() if any(cells)}
    lines = [tuple(kept), ("---",) * len(kept), *zip(*kept.values(), strict=True)]
    return "".join(f"| {' | '.join(cell.replace('|', 'or') for cell in line)} |\n" for line in lines)


def shown_shapes(takes: str) -> str:
    """`"B T D, B T D"` → `` `[B, T, D]` and `[B, T, D]` ``."""
    if " " not in takes or takes.startswith("two "):
        return takes
    return " and ".join(f"`[{', '.join(shape.split())}]`" for shape in takes.split(","))


def fields(kind: type) -> list[Field]:
    """Fields of a value, or attributes of a class that its source writes down, with what is said of them."""
    if issubclass(kind, Operation):
        return []
    found: dict[str, Field] = {}
    for base in reversed([base for base in kind.__mro__ if base.__module__.startswith(OURS)]):
        said = attribute_docs(base.__module__).get(base.__name__, {})
        for name, annotation in inspect.get_annotations(base).items():
            if not name.startswith("_") and not (base is Kinded and str(annotation).startswith("ClassVar")):
                default, described = _default(kind, name)
                found[name] = Field(name, _type_text(annotation), default, described or said.get(name, ""))
    return list(found.values())


def _default(kind: type, name: str) -> tuple[str, str]:
    field = getattr(kind, "model_fields", {}).get(name)
    if field is None:
        default = getattr(kind, "_field_defaults", {}).get(name, inspect.Parameter.empty)
        return ("" if default is inspect.Parameter.empty else f"`{default!r}`"), ""
    described = " ".join((field.description or "").split())
    if field.default_factory is not None:
        return "empty", described
    return ("" if field.default is PydanticUndefined else f"`{_brief(field.default)}`"), described


def _brief(value: Any) -> str:
    return f"{type(value).__name__}()" if isinstance(value, BaseModel) else repr(value)


def _type_text(annotation: Any) -> str:
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def methods(kind: type) -> dict[str, Any]:
    """Public methods and properties, by name; those of other libraries' bases are theirs."""
    found: dict[str, Any] = {}
    ours = [base for base in kind.__mro__ if base.__module__.startswith(OURS) and base is not Kinded]
    for base in reversed(ours):
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if not name.startswith("_") and (inspect.isfunction(function) or isinstance(value, property)):
                found[name] = function
    if issubclass(kind, Operation) and kind is not Operation:  # what every operation has, `Op` says
        return {name: one for name, one in found.items() if name in vars(kind) and inspect.getdoc(one)}
    return found


def constructor(kind: type) -> str:
    """What the class is called with; nothing where a table has its fields, or nobody calls it."""
    is_value = issubclass(kind, BaseModel | tuple | BaseException)
    if is_value or getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        return ""
    return signature(kind).removesuffix(" -> None")


class _Written:
    """An annotation that is shown as it is written, without the quotes of a text."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(function: Any) -> str:
    """As it is written: annotations are text already."""
    found = inspect.signature(function)
    kept = [
        one.replace(annotation=_written(one.annotation))
        for one in found.parameters.values()
        if one.name not in ("self", "cls")
    ]
    shown = found.replace(parameters=kept, return_annotation=_written(found.return_annotation))
    return str(shown).replace("'", '"')


def _written(annotation: Any) -> Any:
    return _Written(annotation) if isinstance(annotation, str) else annotation


def code(line: str) -> str:
    """A line of Python as Markdown, one argument a line where it is long."""
    if len(line) > COLUMNS and "(" in line:
        head, _, rest = line.partition("(")
        inside, _, tail = rest.rpartition(")")
        arguments = "".join(f"    {one},\n" for one in _arguments(inside))
        line = f"{head}(\n{arguments}){tail}"
    return f"```python\n{line}\n```\n"


def _arguments(inside: str) -> Iterator[str]:
    """Split at the commas that are in no bracket."""
    depth, at = 0, 0
    for place, letter in enumerate(inside):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield inside[at:place].strip()
            at = place + 1
    yield inside[at:].strip()


def text(thing: Any) -> str:
    """What its own docstring says, or that of what it overrides."""
    found = inspect.getdoc(thing) or ""
    return f"{found}\n"


@cache
def public_classes() -> frozenset[type]:
    found = (
        getattr(import_module(module), name) for module in MODULES for name in import_module(module).__all__
    )
    return frozenset(one for one in found if isinstance(one, type))


def assigned(module: str, name: str) -> tuple[str, str]:
    """What `name` is in the source of the module that assigns it, and the text below that."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and any(one.name == name for one in node.names):
            return assigned(node.module, name) if node.module.startswith(OURS) else (node.module, "")
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            value = ast.unparse(node.value)
            value = value if '"' in value else value.replace("'", '"')
            return value, attribute_docs(module)[""].get(name, "")
    raise LookupError(f"{module} assigns no {name}: import it from where it is assigned.")


@cache
def attribute_docs(module: str) -> dict[str, dict[str, str]]:
    """Class ("" for the module) → assigned name → the text below it."""
    tree = _tree(module)
    bodies: dict[str, Sequence[ast.stmt]] = {"": tree.body}
    bodies |= {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name: dict(_documented(body)) for name, body in bodies.items()}


def _documented(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, after in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and isinstance(after, ast.Expr):
            value = after.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield target.id, " ".join(inspect.cleandoc(value.value).split())


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))
