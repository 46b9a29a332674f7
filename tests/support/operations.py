"""What the devices of a run did, apart from the time it took: both worlds must agree on it."""

from collections import Counter

FIELDS = (
    "device",
    "kind",
    "name",
    "layer",
    "bytes",
    "payload_bytes",
    "flops",
    "peer",
    "request",
    "token",
)
KINDS = ("compute", "send", "recv", "load", "store", "evict")


def operations(trace):
    """How often each operation, message and access to the disk stands in `trace`, which is plain data."""
    return Counter(tuple(span[field] for field in FIELDS) for span in trace if span.get("kind") in KINDS)
