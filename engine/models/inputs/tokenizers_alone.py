"""The tokenizers of `transformers` without torch, which none of them needs and which takes seconds to import:
for the server of confined calls, whose processes then have them.
"""

import os
import sys

_BLOCKED = "transformers" not in sys.modules and "torch" not in sys.modules

if _BLOCKED:
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    sys.modules["torch"] = None  # type: ignore[assignment]  # so it counts as not installed
try:
    from transformers import AutoTokenizer, TokenizersBackend
finally:
    if _BLOCKED:
        del sys.modules["torch"]

__all__ = ["AutoTokenizer", "TokenizersBackend"]
