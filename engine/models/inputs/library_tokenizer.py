"""The tokenizer that `transformers` makes of a model's directory, and the ids that it gives itself.

Which ids a text gets depends on several files, on many keys and on the model's family: tokens are added in
tokenizer_config.json and in added_tokens.json, and a family's class may replace what tokenizer.json says. So
the library reads them, in a confined process, once for each content of the files.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine.confined import Confined
from engine.domain.cache_directory import cache_directory, prune
from engine.domain.command_name import to_install
from engine.domain.errors import HostError, SpecError

FILE = "tokenizer.json"
FILES = (
    FILE,
    "tokenizer_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
)
"""What the library reads beside config.json. Only a directory with tokenizer.json is taken."""
CONFIG = "config.json"
KEEP_FILES = 50
MODULES = ("engine.models.inputs.tokenizers_alone",)
READ_S, READ_BYTES = 60.0, 4 << 30
"""The largest vocabularies have 262,144 tokens, which the library reads in seconds."""


def library_tokenizer(directory: str) -> tuple[str, bool]:
    """The library's tokenizer as the text of a tokenizer.json, and whether it splits a text's special tokens.

    Raises `SpecError` with the reason where the library makes none, or one that is code of its own.
    """
    file = Path(directory) / FILE
    if not file.is_file():
        raise SpecError(f"{file}: no such file, so text cannot become tokens: give --prompt-tokens instead.")
    kept = cache_directory() / "tokenizers" / f"{_content_hash(Path(directory))}.json"
    with suppress(OSError, ValueError):
        text, splits = json.loads(kept.read_text(encoding="utf-8"))
        return text, splits
    text, splits = _MADE(directory, directory)
    with suppress(OSError):  # then it is made again
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{uuid.uuid4().hex}.part")
        part.write_text(json.dumps([text, splits]), encoding="utf-8")
        part.rename(kept)
        prune(kept.parent, "*.json", KEEP_FILES)
    return text, splits


def library_ids(directory: str, text: str, chat: bool = False) -> tuple[int, ...]:
    """The ids of `text` by the library's own call, or with `chat` of a message. Raises `SpecError`."""
    return _library_ids(directory, text, chat, tuple(tokenizer_digests(Path(directory))))


@lru_cache(maxsize=64)
def _library_ids(directory: str, text: str, chat: bool, digests: tuple[str, ...]) -> tuple[int, ...]:
    """The ids by files with these `digests`: a run's are asked for before it, and after it once more."""
    return tuple(_IDS(directory, directory, text, chat))


def tokenizer_digests(directory: Path) -> list[str]:
    """Digests of all files that decide the ids, in their order; "" for one that is not there."""
    paths = [directory / name for name in (CONFIG, *FILES)]
    return [hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in paths]


def _content_hash(directory: Path) -> str:
    try:
        versions = [version(package) for package in ("transformers", "tokenizers")]
    except PackageNotFoundError as error:
        remedy = f"{to_install('torch')}, or give --prompt-tokens instead of a text"
        raise HostError(f"text becomes tokens by {error.name}, which is not installed: {remedy}.") from error
    return hashlib.sha256(json.dumps([versions, tokenizer_digests(directory)]).encode()).hexdigest()[:32]


# In the confined process --------------------------------------------------------------------------
def _made(directory: str) -> tuple[str, bool]:
    tokenizer = _loaded(directory)
    from engine.models.inputs.tokenizers_alone import TokenizersBackend

    kind = type(tokenizer)
    plain = isinstance(tokenizer, TokenizersBackend) and all(
        _owner(kind, name) == _owner(TokenizersBackend, name) for name in ("__call__", "_encode_plus")
    )
    if not plain:
        raise SpecError(
            f"{directory}: transformers makes a {kind.__name__} of it, which does more than {FILE} can say, "
            "so text cannot become tokens: give --prompt-tokens instead."
        )
    return tokenizer.backend_tokenizer.to_str(), bool(tokenizer.split_special_tokens)


def _ids(directory: str, text: str, chat: bool) -> list[int]:
    tokenizer = _loaded(directory)
    if not chat:
        return list(tokenizer(text)["input_ids"])
    message = {"role": "user", "content": text}
    return list(tokenizer.apply_chat_template([message], add_generation_prompt=True)["input_ids"])


def _loaded(directory: str) -> Any:
    from engine.models.inputs.tokenizers_alone import AutoTokenizer

    return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)


def _owner(kind: type, name: str) -> type:
    return next(one for one in kind.__mro__ if name in vars(one))


_MADE = Confined(
    _made, READ_S, READ_BYTES, modules=MODULES, refusal=": transformers makes no tokenizer of it"
)
_IDS = Confined(_ids, READ_S, READ_BYTES, modules=MODULES, refusal=": transformers does not tokenise with it")
