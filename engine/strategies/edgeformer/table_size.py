"""How large a block's mapping table may be. Apart from the table, so that planning needs no NumPy."""

from __future__ import annotations

from engine.domain.model import ModelSpec

CAPACITY = 4096
"""The largest number of entries of one block; beyond it the least recently hit entry is evicted."""
FEATURE_POINTS = 64
"""Values to which f_inter is resampled, so that inputs of any length can be compared."""
SCALARS = 4
"""Scalars per entry: squared length, importance, cluster and time of the last hit."""


def entry_bytes(model: ModelSpec) -> int:
    """Bytes of one head: its features and scalars in float64, twice, because an entry may be a cluster of its
    own, which has a centroid.
    """
    return 2 * 8 * (2 * model.head_dim + FEATURE_POINTS + SCALARS)
