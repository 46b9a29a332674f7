"""All model families, found by name (config.json's model_type)."""

from __future__ import annotations

from engine.domain.errors import SpecError
from engine.models.families.bert import BERT
from engine.models.families.family import Family
from engine.models.families.gemma import GEMMA, GEMMA2, GEMMA3
from engine.models.families.gpt2 import GPT2
from engine.models.families.gpt_oss import GPT_OSS
from engine.models.families.granite import GRANITE, GRANITE_MOE, GRANITE_MOE_SHARED
from engine.models.families.llama import LLAMA, QWEN3
from engine.models.families.llava import LLAVA
from engine.models.families.mistral import MISTRAL
from engine.models.families.mixtures import MIXTRAL, QWEN2_MOE, QWEN3_MOE
from engine.models.families.olmo import OLMO2, OLMOE
from engine.models.families.opt import OPT
from engine.models.families.phi3 import PHI3
from engine.models.families.qwen2 import QWEN2
from engine.models.families.smollm3 import SMOLLM3
from engine.models.families.unsupported import why_not
from engine.models.families.vit import VIT

FAMILIES: tuple[Family, ...] = (
    GPT2,
    OPT,
    BERT,
    LLAMA,
    QWEN3,
    QWEN2,
    MISTRAL,
    GEMMA,
    GEMMA2,
    GEMMA3,
    PHI3,
    SMOLLM3,
    MIXTRAL,
    QWEN3_MOE,
    QWEN2_MOE,
    OLMO2,
    OLMOE,
    GRANITE,
    GRANITE_MOE,
    GRANITE_MOE_SHARED,
    GPT_OSS,
    VIT,
    LLAVA,
)
"""Add a new family here."""

_BY_NAME = {row.name: row for row in FAMILIES}
if len(_BY_NAME) < len(FAMILIES):
    raise RuntimeError("two model families have the same name: rename one of them")


def family(name: str) -> Family:
    """The family called `name` (config.json's model_type). Raises `SpecError` with the known names."""
    if name not in _BY_NAME:
        raise SpecError(f"model_type {name}: {why_not(name)}, expected one of {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]
