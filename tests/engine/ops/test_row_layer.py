"""One row through a whole part of a layer in one call gives what the part's operations give one by one."""

import pytest
import torch

from engine.domain.model import in_bits, in_int8
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import whole_model
from engine.ops.torch_kernels import core
from engine.ops.torch_kernels.linear import use
from engine.ops.torch_kernels.linear_table import LinearTable
from engine.ops.torch_kernels.row_library import compiler, loaded, make_library
from engine.ops.torch_kernels.row_products import _functions
from tests.support.one_device import model_of, relative_error, run, store_of

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

ALIKE = ("tiny-llama", "grouped", "tiny-qwen2", "tiny-mistral", "tiny-smollm3")


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    _functions.cache_clear()
    loaded.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        library = make_library()
        yield LinearTable(processor="a test", torch="0", row_library=library, packed_rows=1, choices=())
    _functions.cache_clear()
    loaded.cache_clear()


@pytest.fixture(autouse=True)
def default_kernels():
    yield
    use(None)


def answers(store, operations, rows=9, steps=4):
    """Of a prompt and some single rows after it."""
    generator = torch.Generator().manual_seed(5)
    caches, found = {}, []
    for count in (rows, *[1] * steps):
        x = torch.randn(1, count, store.model.hidden_size, generator=generator)
        found += [run(op, store, x, caches=caches) for op in operations]
    return found


def count_calls(monkeypatch):
    calls = []
    for kind in ("RowAttention", "RowFeedForward"):
        plain = getattr(core, kind).__call__
        monkeypatch.setattr(
            getattr(core, kind),
            "__call__",
            lambda self, *given, plain=plain: calls.append(type(self).__name__) or plain(self, *given),
        )
    return calls


@pytest.mark.parametrize("bits", [0, 8, 4])
@pytest.mark.parametrize("name", ALIKE)
def test_whole_and_partial_layers_are_the_same_in_one_call(name, bits, own_cache, monkeypatch):
    model = model_of(name).model_copy(update={"weight_bits": bits})
    store = WeightStore(model, store_of(name).ref, 3)
    for piece in whole_model(model):
        store.load(piece)
    group, columns = model.group_size, model.intermediate_size
    operations = [
        ops.Block(0, "a"),
        ops.Attention(1, group, model.num_heads, False, "b"),
        ops.FeedForward(1, columns // 3, columns - 1, False),
    ]
    expected = answers(store, operations)
    calls = count_calls(monkeypatch)
    use(own_cache)
    store._forget()
    got = answers(store, operations)
    assert all(relative_error(one, two) < 1e-5 for one, two in zip(got, expected, strict=True))
    assert {"RowAttention", "RowFeedForward"} == set(calls)


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-gemma2", "tiny-qwen3"])
def test_what_is_made_in_another_way_goes_on_as_before(name, own_cache, monkeypatch):
    calls = count_calls(monkeypatch)
    store = store_of(name)
    expected = answers(store, [ops.Block(0, "a")])
    use(own_cache)
    store._forget()
    assert all(map(torch.equal, answers(store, [ops.Block(0, "a")]), expected))
    assert calls == []
    store._forget()


OTHERWISE = {
    "norm": "layernorm",
    "norm_position": "post",
    "norm_adds_one": True,
    "sublayer_norm": True,
    "qk_norm": True,
    "score_softcap": 50.0,
    "causal": False,
    "gated_ffn": False,
    "activation": "gelu",
    "dtype": "bfloat16",
    "activation_bits": 8,
}


@pytest.mark.parametrize("field", OTHERWISE)
def test_a_part_with_one_thing_made_otherwise_is_not_alike(field):
    model = model_of("tiny-llama")
    assert model.has_llama_parts
    assert not model.model_copy(update={field: OTHERWISE[field]}).has_llama_parts


def test_a_cache_grows_and_keeps_its_rows(own_cache):
    store = store_of("tiny-llama")
    store._forget()
    expected = answers(store, [ops.Block(0, "a")], rows=60, steps=80)
    use(own_cache)
    store._forget()
    got = answers(store, [ops.Block(0, "a")], rows=60, steps=80)
    assert relative_error(got[-1], expected[-1]) < 1e-5
    store._forget()


def test_products_of_whole_numbers_are_taken_one_by_one(own_cache, monkeypatch):
    model = in_int8(in_bits(model_of("tiny-llama"), 8))
    store = WeightStore(model, store_of("tiny-llama").ref, 3)
    for piece in whole_model(model):
        store.load(piece)
    expected = answers(store, [ops.Block(0, "a")])
    calls = count_calls(monkeypatch)
    use(own_cache)
    store._forget()
    got = answers(store, [ops.Block(0, "a")])
    assert all(torch.equal(one, two) for one, two in zip(got, expected, strict=True)) and calls == []
