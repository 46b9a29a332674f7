"""YAML ⇄ keys, lists and plain values, by the core schema of YAML 1.2: `1e8` is a number, `no` is a text.

Version 1.1 reads those two the other way round, so what is written here is quoted wherever the two versions
differ. Aliases, tags and directives are refused: a cluster file needs none, and with aliases a short text can
stand for a huge document.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

_PARSER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""The parser. Both read the same grammar; the one in C is ten times as fast."""

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_BASE_10 = re.compile(r"[-+]?[0-9]+")
_BASE_8_OR_16 = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MAX_DIGITS = 400
"""The most digits of a number: more than any finite one needs before its exponent; Python refuses to read
4300.
"""
_NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FOLDED = re.compile("[\r\x85\u2028\u2029]")
"""What a reader may take for an end of line, or drop, unless it is written as an escape."""
_DIRECTIVE = re.compile(r"^%(?!YAML[ \t])", re.MULTILINE)
_STARTS = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_ENDS = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)


class NotYaml(ValueError):
    """Why a text is no YAML of plain values, and at which line."""


def read_yaml(text: str, max_depth: int) -> Any:
    """The one document of a text. Raises `NotYaml`, and `RecursionError` for lists and tables that are nested
    deeper than `max_depth`.
    """
    text = text.removeprefix("\ufeff")
    if found := _NOT_PRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise NotYaml(f"the character U+{ord(found.group()):04X} (at line {line})")
    try:
        if _DIRECTIVE.search(text):
            _check_directives(text, max_depth)
        return _document(text, max_depth)
    except yaml.MarkedYAMLError as error:
        raise NotYaml(_sentence(error, text)) from None


def _check_directives(text: str, max_depth: int) -> None:
    """Refuse directives before they are parsed: the parser's time grows with the square of their number.

    Only the scanner knows whether a line that begins with `%` is one, or part of a quoted text. Its own time
    grows with the square of the depth.
    """
    depth = 0
    for token in yaml.scan(text, Loader=_PARSER):
        if isinstance(token, yaml.DirectiveToken) and token.name != "YAML":
            line = token.start_mark.line
            raise NotYaml(f"the directive {text.splitlines()[line][:20]} is not read (at line {line + 1})")
        depth += isinstance(token, _STARTS) - isinstance(token, _ENDS)
        if depth > max_depth:
            raise RecursionError


def _document(text: str, max_depth: int) -> Any:
    root = _Open(None)
    stack = [root]
    num_documents = 0
    for event in yaml.parse(text, Loader=_PARSER):
        if isinstance(event, yaml.DocumentStartEvent):
            num_documents += 1
            if num_documents > 1:
                _refuse("a second document begins, and a file has one", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop()
            stack[-1].take(done.value, event)
        elif isinstance(event, yaml.NodeEvent):
            _check_plain(event)
            if isinstance(event, yaml.ScalarEvent):
                stack[-1].take_scalar(event)
                continue
            if len(stack) > max_depth:
                raise RecursionError
            stack.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else []))
    return root.value


class _Open:
    """A list or table that is being read, or the whole document (`value` is None until it is read)."""

    def __init__(self, value: dict[str, Any] | list[Any] | None):
        self.value: Any = value
        self.key: str | None = None

    def take_scalar(self, event: yaml.ScalarEvent) -> None:
        if not isinstance(self.value, dict) or self.key is not None:
            self.take(_plain(event), event)
        elif event.value in self.value:
            _refuse(f"the key {event.value[:40]} stands twice in one table", event)
        else:
            self.key = event.value

    def take(self, value: Any, event: yaml.Event) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif not isinstance(self.value, dict):
            self.value = value
        elif self.key is None:
            _refuse("a list or table stands where a key is expected", event)
        else:
            self.value[self.key], self.key = value, None


def _check_plain(event: yaml.NodeEvent) -> None:
    if isinstance(event, yaml.AliasEvent):
        _refuse(f"the alias *{event.anchor} is not read: write out what it stands for", event)
    tag = getattr(event, "tag", None)
    if tag is not None:
        _refuse(f"the tag {tag[:60]} is not read: write a plain value", event)


def _plain(event: yaml.ScalarEvent) -> Any:
    """The value that a scalar means; a quoted one and a block of text mean themselves."""
    text: str = event.value
    if event.style:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _BASE_10.fullmatch(text):
        return int(text) if len(text) <= _MAX_DIGITS else float(text)
    if _BASE_8_OR_16.fullmatch(text):
        return int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) else text


def _refuse(reason: str, event: yaml.Event) -> NoReturn:
    mark = event.start_mark
    raise NotYaml(f"{reason} (at line {mark.line + 1})" if mark else reason)


def _sentence(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    reason = ", ".join(part for part in (error.context, error.problem) if part)
    if mark is None:
        return reason
    line = ([*text.splitlines(), ""])[min(mark.line, text.count("\n"))]
    if line[mark.column : mark.column + 1] == "\t":
        reason = "a tab cannot indent: write spaces"
    return f"{reason} (at line {mark.line + 1}, column {mark.column + 1})"


class _Dumper(yaml.SafeDumper):
    """Writes points on one line, and quotes every text that a reader of either version takes for a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.Node:
    short = all(isinstance(value, int | float | str) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=short)


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if _FOLDED.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(list, _write_list)
_Dumper.add_representer(str, _write_text)
for _tag, _pattern in (("int", _BASE_10), ("int", _BASE_8_OR_16), ("float", _FLOAT)):
    _Dumper.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern.pattern})$"), list("-+.0123456789")
    )


def write_yaml(document: dict[str, Any]) -> str:
    """Text that `read_yaml` reads back as an equal document."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text
