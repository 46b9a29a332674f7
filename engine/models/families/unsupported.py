"""Says why a config of a known kind is not computed here, and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.errors import SpecError

LINEAR = "most of its layers are linear attention with a state in place of keys and values"
CONVOLUTIONS = "many of its layers are short convolutions"
STATE_SPACE = "its layers are state spaces, or most of them"
LATENT = "its keys and values are kept as a compressed latent"
REASONS = {
    **dict.fromkeys(("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"), LINEAR),
    "kimi_linear": LINEAR,
    **dict.fromkeys(("lfm2", "lfm2_moe", "lfm2_vl", "lfm3", "lfm3_vl"), CONVOLUTIONS),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv", "recurrent_gemma"), STATE_SPACE),
    **dict.fromkeys(("jamba", "bamba", "zamba2", "nemotron_h", "falcon_h1", "granitemoehybrid"), STATE_SPACE),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "deepseek_v32"), LATENT),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), "its layers add embeddings of their own"),
}
"""Families that people ask for, and what of them no operation computes."""

MXFP4 = "mxfp4"
RESTORED = {"gpt_oss": MXFP4}
"""Families with weights that a library has quantised and that are restored when they are read."""
METHODS = {
    "awq": "AWQ",
    "gptq": "GPTQ",
    "fp8": "FP8",
    MXFP4: "MXFP4",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
}


def why_not(kind: str) -> str:
    """Why models of `kind` are not computed, as the rest of a sentence about it."""
    reason = REASONS.get(kind)
    return f"{reason}, which no operation computes" if reason else "no such family"


def plain(config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """`config` without the key of packed weights that are restored when they are read. Raises `SpecError`,
    with what to do instead, for others that a library has quantised.
    """
    left = dict(config)
    for key in ("quantization_config", "quantization"):  # MLX writes the second, and in newer files both
        found = config.get(key)
        if found:
            settings: Mapping[str, Any] = found if isinstance(found, dict) else {}
            method = settings.get("quant_method")
            if method is not None and method == RESTORED.get(str(config.get("model_type"))):
                del left[key]
                continue
            named = METHODS.get(method, "another library") if isinstance(method, str) else "MLX"
            bits = _nearest_bits(settings, method)
            raise SpecError(
                f"{where}, {key}: quantized weights of {named} are not read: take the model in bfloat16 with "
                f"--weight-bits {bits}, or, for random weights alone, delete the key and use "
                f"--weights random --weight-bits {bits}."
            )
    return left


def _nearest_bits(settings: Mapping[str, Any], method: Any) -> int:
    """8 or 4: the bits in which matrices can be computed that are next to those of the file."""
    if method == "fp8" or settings.get("load_in_8bit") is True:
        return 8
    bits = settings.get("bits", settings.get("w_bit", 4))
    return 8 if isinstance(bits, int) and bits > 5 else 4
