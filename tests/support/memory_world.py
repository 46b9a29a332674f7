"""A third, tiny world for tests: all devices in this process, real torch tensors, no clock.

Programs that can go on are resumed in an order drawn from a seed, so a result that depends on who comes
first shows up as a difference between seeds.
"""

import json
import random
from collections import defaultdict, deque
from functools import lru_cache

from engine.models.weights.store import WeightStore
from engine.ops.ledger import Ledger, is_of_cache
from engine.ops.tensors import meta_of, payload_bytes
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.ops.torch_kernels.packed import Packed
from engine.program.serve import serve
from engine.strategies.registry import strategy
from engine.worlds.common.proof import named_pieces
from engine.worlds.common.row_files import RowFiles
from engine.worlds.common.source import RealSource
from tests.support.small_cases import plan_of, prompts, spec_of, star


class Handle:
    def __init__(self):
        self.done, self.value, self.error = False, None, None

    def finish(self, value):
        self.done, self.value = True, value
        return self

    def __await__(self):
        while not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


class MemoryWorld:
    """`sent[src, dst]` lists (tag, payload bytes) of every message."""

    def __init__(self, cluster, model, seed=0):
        self.cluster, self.model = cluster, model
        self.random = random.Random(seed)
        self.boxes = defaultdict(deque)
        self.sent = defaultdict(list)
        self.kept = {}
        self.programs = []
        self.devices = [MemoryDevice(rank, self) for rank in range(len(cluster.devices))]

    def run(self, programs):
        """`programs`: (rank, coroutine). Returns the results in their order."""
        handles = [self.start(rank, program) for rank, program in programs]
        while self.programs:
            self.disturb()
            ready = [entry for entry in self.programs if self._ready(entry[2])]
            assert ready, f"deadlock: {[entry[0] for entry in self.programs]} wait for messages"
            entry = self.random.choice(ready)
            self.programs.remove(entry)
            rank, program, _, handle = entry
            try:
                self.programs.append((rank, program, program.send(None), handle))
            except StopIteration as stop:
                handle.finish(stop.value)
        assert not any(self.boxes.values()), "messages that nobody received"
        return [handle.value for handle in handles]

    def disturb(self):
        """Before every step: where a test lets devices die."""

    def start(self, rank, program):
        handle = Handle()
        self.programs.append((rank, program, None, handle))
        return handle

    def _ready(self, awaited):
        if isinstance(awaited, _Recv) and not awaited.done and self.boxes[awaited.key]:
            note, tensor = self.boxes[awaited.key].popleft()
            awaited.finish((note, tensor) if awaited.noted else tensor)
        return awaited is None or awaited.done


class _Recv(Handle):
    def __init__(self, key, noted):
        super().__init__()
        self.key, self.noted = key, noted


class MemoryDevice:
    """A `Ctx` without clock, on a cluster that never changes. Its ledger raises `OutOfMemory`."""

    def __init__(self, rank, world):
        self.rank, self.world = rank, world
        self.cluster, self.model = world.cluster, world.model
        self.world_size = len(world.cluster.devices)
        self.device = world.cluster.devices[rank]
        self.ledger = Ledger(self.device.name, self.device.memory_bytes, self.model)
        self.weights, self.caches, self.marks, self.decided = None, {}, [], set()
        self.row_files = RowFiles(self.caches)
        self.memory = {}
        self.now_s, self.cluster_now, self.failed = 0.0, self.cluster, frozenset()

    def compute(self, op, *inputs):
        metas = [meta_of(x) for x in inputs]
        self.ledger.run(op, metas, op.cost(self.model, metas, self.ledger.rows(op)))
        return Handle().finish(arithmetic.run(op, self.model, self.weights, self.caches, inputs))

    async def compute_layers(self, layers, x):
        for op in layers.ops:
            x = await self.compute(op, x)
        return x

    def send(self, tensor, dst, tag, note=()):
        assert dst != self.rank, "sends to itself"
        if dst in self.failed:
            return Handle().finish(None)
        self.world.boxes[self.rank, dst, tag].append((tuple(note), tensor.clone()))
        self.world.sent[self.rank, dst].append((tag, payload_bytes(tensor)))
        return Handle().finish(None)

    def recv(self, src, tag):
        assert src != self.rank, "receives from itself"
        return _Recv((src, self.rank, tag), noted=False)

    def recv_noted(self, src, tag):
        assert src != self.rank, "receives from itself"
        return _Recv((src, self.rank, tag), noted=True)

    def decide(self, name, choice, *inputs):
        assert name not in self.decided, f"{name} is decided twice"
        self.decided.add(name)
        return json.loads(json.dumps(choice(*inputs)))

    def spawn(self, program):
        return self.world.start(self.rank, program)

    def load(self, piece):
        self.ledger.load(piece)
        self.weights.load(piece)
        return Handle().finish(None)

    def evict(self, piece):
        self.ledger.evict(piece)
        self.weights.evict(piece)

    def holds(self, piece):
        return piece in self.weights.held

    @property
    def managed_memory(self):
        return self

    def store_rows(self, cache, layer, rows):
        self.ledger.store_rows(cache, layer, rows)
        self.row_files.store(cache, layer, rows)
        return Handle().finish(None)

    def drop_rows(self, cache, layer):
        self.row_files.drop(cache, layer, self.ledger.drop_rows(cache, layer))

    def fetch_rows(self, cache, layer):
        self.ledger.fetch_rows(cache, layer)
        self.row_files.fetch(cache, layer)
        return Handle().finish(None)

    def reserve(self, name, size_bytes):
        self.ledger.reserve(name, size_bytes)

    def release(self, cache):
        self.ledger.release(cache)
        self.row_files.release(cache)
        for key in [key for key in self.caches if is_of_cache(key[0], cache)]:
            del self.caches[key]

    def at(self, request, token):
        pass

    def until(self, time_s):
        """The wait for a request is the only thing that takes time here."""
        self.now_s = max(self.now_s, time_s)
        return Handle().finish(None)

    def keep_logits(self, requests, index, start, logits):
        self.world.kept |= named_pieces(requests, index, start, logits)

    def occupy(self, duration_s: float) -> None:
        """Nothing here takes time."""

    def mark(self, name, **facts):
        self.marks.append((name, facts))

    def emit(self, mark):
        self.marks.append((mark.name, mark.facts))


class DrawnOnce(WeightStore):
    """Weights of which each tensor is drawn once, whatever devices of whatever runs have it: on models this
    small drawing takes as long as computing. Each device has its own copy.
    """

    def _loaded(self, piece):
        known = _drawn(self.model, self.ref, self.seed, piece)
        if any(isinstance(tensor, Packed) for tensor in known.values()):
            return super()._loaded(piece)  # a copy would be restored
        return {key: tensor.clone() for key, tensor in known.items()}


@lru_cache(maxsize=4096)
def _drawn(model, ref, seed, piece):
    store = WeightStore(model, ref, seed)
    store.load(piece)
    return store.held[piece]


def source_in(world, spec):
    """What the real worlds have at the source: it keeps logits and hidden states per request."""
    device = world.devices[spec.cluster.source_rank]
    device.spec = spec
    return RealSource(device)


def run_in_memory(spec, plan, requests, seed=0):
    """Serve `requests` on real tensors; the real worlds' source with its results, and the world."""
    world = MemoryWorld(spec.cluster, spec.model, seed)
    source = source_in(world, spec)
    programs = []
    for rank, device in enumerate(world.devices):
        device.weights = DrawnOnce(spec.model, spec.weights, spec.seed)
        for piece in plan.held_by(rank):
            device.load(piece)
        chosen, io = strategy(spec.strategy), source if device is source.device else None
        programs.append((rank, serve(device, chosen, plan, spec.workload, requests, io)))
    world.run(programs)
    return source, world


@lru_cache(maxsize=16)
def alone(model, rows, new_tokens, requests=1):
    """The source after the same prompts on one device with room for everything, for all tests that compare
    with it.
    """
    spec = spec_of("single", model, star([1e10]), rows=rows, new_tokens=new_tokens, requests=requests)
    return run_in_memory(spec, plan_of(spec), prompts(spec))[0]
