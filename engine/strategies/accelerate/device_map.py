"""Hugging Face Accelerate's `infer_auto_device_map`: which device holds which module. Pure.

Reproduces the behaviour of Accelerate 1.15: one pass over the modules in order, with a pointer that moves to
the next device when a module does not fit, and never back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

HOST = "cpu"
OFFLOAD = "disk"


class Module(NamedTuple):
    """A node of the module tree: it has either children, or bytes and is never split (a block, a leaf)."""

    name: str
    atom_bytes: int = 0
    children: tuple[Module, ...] = ()

    @property
    def bytes(self) -> int:
        return self.atom_bytes + sum(child.bytes for child in self.children)

    @property
    def atoms(self) -> tuple[Module, ...]:
        """The modules that cannot be split, in order."""
        return tuple(atom for child in self.children for atom in child.atoms) if self.children else (self,)


def infer_device_map(
    modules: Sequence[Module],
    max_bytes: Mapping[str, float],
    ties: Mapping[str, str] | None = None,
    used: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """Map every atom to a device. `max_bytes` is by device in order; "disk" follows, without limit.

    The first device and "cpu" keep room for the largest atom that is not placed yet, because an offloaded
    layer is loaded there to run. `ties` maps a module to a later one that shares its tensors and so has no
    bytes of its own; both go to one device. `used` has the bytes that are taken beforehand.
    """
    order = [*max_bytes, OFFLOAD]
    limits = {**max_bytes, OFFLOAD: inf}
    main = {order[0], HOST}
    taken = dict.fromkeys(order, 0) | dict(used or {})
    ties, queue, placed, at = ties or {}, list(modules), dict[str, str](), 0
    while queue:
        module, device = queue[0], order[at]
        atoms = module.atoms
        tied = [ties[atom.name] for atom in atoms if atom.name in ties]
        rest = [other for other in queue[1:] if other.name not in tied]
        partners = [other for other in queue[1:] if other.name in tied]
        size = module.bytes + sum(partner.bytes for partner in partners)
        largest = max((atom.bytes for other in queue[1:] for atom in other.atoms), default=0)
        reserve = largest if device in main else 0
        if taken[device] + size <= limits[device] - reserve:
            for atom in (*atoms, *(a for partner in partners for a in partner.atoms)):
                placed[atom.name] = device
            taken[device] += size
            queue = rest
        elif module.children:
            queue = [*module.children, *queue[1:]]
        else:
            at += 1
    return placed


def balanced(
    max_bytes: Mapping[str, float],
    total_bytes: int,
    block_bytes: int,
    mean_leaf_bytes: int,
    spare_first: bool = False,
) -> dict[str, float]:
    """`get_balanced_memory`: every device except the last gets at most an equal share plus a buffer.

    With `spare_first` (balanced_low_0) the first device gets only what the others cannot hold.
    """
    names = list(max_bytes)
    spare_first = spare_first and len(names) > 1
    share = total_bytes // (len(names) - spare_first) + int(1.25 * max(block_bytes, mean_leaf_bytes))
    capped = dict(max_bytes)
    for name in names[spare_first:-1]:
        capped[name] = min(share, max_bytes[name])
    if spare_first:
        others = sum(capped[name] for name in names[1:])
        capped[names[0]] = min(max(0, total_bytes - others), max_bytes[names[0]])
    return capped
