"""Weights: only the owned slice is read or drawn, and any slicing gives the same numbers."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Slice
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.families.tensor_names import stored_as
from engine.models.reference import transformers_outputs
from engine.models.weights import store as weight_store
from engine.models.weights.store import WeightStore
from engine.ops import core as ops
from engine.ops.layout import tensor_parts, whole_model
from engine.ops.sizes import num_parameters, weight_bytes
from tests.support.one_device import HEADS_APART, TINY, model_of, run, spec_of, store_of

NAMES = (*TINY, "grouped")
RANDOM = WeightsRef()


SAVED = (*TINY, "bare tiny-gpt2", "bare tiny-opt", "bare tiny-bert", "sharded tiny-llama")


@pytest.fixture(scope="module", params=SAVED)
def saved(request, tmp_path_factory):
    """A directory that `transformers` wrote: with the base model's prefix, without it, and in shards."""
    kind, _, name = request.param.rpartition(" ")
    folder = tmp_path_factory.mktemp("saved")
    module = transformers_outputs.library_model(spec_of(name))
    options = {"max_shard_size": "30KB"} if kind == "sharded" else {}
    (module.base_model if kind == "bare" else module).save_pretrained(folder, **options)
    assert (folder / "model.safetensors.index.json").is_file() == (kind == "sharded")
    return name, WeightsRef(kind="directory", directory=str(folder))


@st.composite
def pieces(draw, model):
    """Any slice of any part."""
    part = draw(st.sampled_from(("embed", "attention", "ffn", "lm_head")))
    if part in ("embed", "lm_head"):
        return Slice(layer=-1, part=part)
    axis, size = ("heads", model.num_heads) if part == "attention" else ("columns", model.intermediate_size)
    if part == "attention" and model.qk_norm_over_heads:
        start, stop = 0, draw(st.sampled_from((0, size)))
    else:
        start = draw(st.integers(0, size))
        stop = draw(st.integers(start, size))
    layer = draw(st.integers(0, model.num_layers - 1))
    bare = draw(st.booleans())
    return Slice(layer=layer, part=part, axis=axis, start=start, stop=stop, bare=bare)


def cut(model, piece):
    """`piece` cut out of whole tensors."""
    return {
        part.key: (part.name, part.dim, part.start, part.stop - part.start)
        for part in tensor_parts(model, piece)
    }


@settings(max_examples=80, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_random_slices_are_slices_of_the_same_random_whole(data, name):
    model = model_of(name)
    piece = data.draw(pieces(model))
    whole = weight_store.load(model, RANDOM, piece.model_copy(update={"axis": "all"}), 11)
    got = weight_store.load(model, RANDOM, piece, 11)
    for key, (_, dim, start, length) in cut(model, piece).items():
        assert torch.equal(got[key], whole[key].narrow(dim, start, length)), key
    assert sum(tensor.nbytes for tensor in got.values()) == weight_bytes(model, piece)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_a_slice_that_is_cut_out_outlives_the_larger_one_whose_memory_goes(data, name):
    model = model_of(name)
    piece = data.draw(pieces(model))
    whole = piece.model_copy(update={"axis": "all", "bare": False})
    store = WeightStore(model, RANDOM, 11)
    store.load(whole)
    kept = {tensor.untyped_storage().data_ptr() for tensor in store.held[whole].values()}
    store.cut_out(piece)
    if piece != whole:
        store.evict(whole)
        assert not kept & {t.untyped_storage().data_ptr() for t in store.held[piece].values() if t.numel()}
    got, expected = store.get(piece), weight_store.load(model, RANDOM, piece, 11)
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[key], expected[key]) for key in expected)


def test_random_weights_cross_their_blocks_unchanged():
    model = catalogue.resolve("gpt2")[0]
    whole = weight_store.load(model, RANDOM, Slice(layer=3, part="ffn", axis="columns", start=0, stop=300), 1)
    got = weight_store.load(model, RANDOM, Slice(layer=3, part="ffn", axis="columns", start=50, stop=200), 1)
    assert torch.equal(got["up.weight"], whole["up.weight"][50:200])
    assert torch.equal(got["down.weight"], whole["down.weight"][:, 50:200])


def test_seed_layer_and_tensor_all_change_random_weights():
    model = model_of("tiny-gpt2")
    drawn = [
        weight_store.load(model, RANDOM, Slice(layer=layer, part="attention"), seed)[f"{key}.weight"]
        for layer, seed, key in ((0, 1, "q"), (1, 1, "q"), (0, 2, "q"), (0, 1, "k"))
    ]
    assert all(not torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])


def test_random_norms_and_biases_are_near_but_not_at_their_neutral_values():
    tensors = weight_store.load(model_of("tiny-gpt2"), RANDOM, Slice(layer=0, part="attention"), 1)
    for key, neutral in (("norm.weight", 1.0), ("norm.bias", 0.0), ("q.bias", 0.0), ("o.bias", 0.0)):
        distance = (tensors[key] - neutral).abs()
        assert distance.min() > 0 and distance.max() < 0.1


def test_slices_of_a_saved_directory_are_the_weights_that_were_saved(saved):
    name, ref = saved
    model = catalogue.resolve(ref.directory)[0].model_copy(update={"name": name})
    for piece in whole_model(model):
        expected = weight_store.load(model_of(name), RANDOM, piece, 11)
        for key, tensor in weight_store.load(model, ref, piece, 0).items():
            assert torch.equal(tensor, expected[key]), (piece, key)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_slice_of_a_saved_directory_is_that_slice_and_no_more_is_read(saved, data):
    name, ref = saved
    model = model_of(name)
    piece = data.draw(pieces(model))
    source = weight_store.DirectorySource(ref.directory)
    read = []
    source.files = {key: Counting(file, read) for key, file in source.files.items()}
    expected_bytes = weight_bytes(model, piece)
    for part in tensor_parts(model, piece):
        got = source.read(model, part)
        expected = weight_store.RandomSource(11).read(model, part)
        assert torch.equal(got, expected), part
        if stored_as(model, part.name).interleaved:  # what lies between two rows is read with them
            expected_bytes += got[:-1].nbytes
    assert sum(read) == expected_bytes


class Counting:
    """An open safetensors file that notes how many bytes are asked of it."""

    def __init__(self, file, read):
        self.file, self.read = file, read

    def get_slice(self, name):
        return CountingSlice(self.file.get_slice(name), self.read)


class CountingSlice:
    def __init__(self, tensor, read):
        self.tensor, self.read = tensor, read

    def get_shape(self):
        return self.tensor.get_shape()

    def __getitem__(self, index):
        found = self.tensor[index]
        self.read.append(found.nbytes)
        return found


def test_older_names_of_norms_are_found(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-bert")).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for key, tensor in load_file(file).items():
        for new, old in older.items():
            key = key.replace(new, old)
        renamed[f"bert.{key}"] = tensor.clone()
    save_file(renamed, file)
    ref = WeightsRef(kind="directory", directory=str(tmp_path))
    got = weight_store.load(model_of("tiny-bert"), ref, Slice(layer=1, part="ffn"), 0)
    expected = weight_store.load(model_of("tiny-bert"), RANDOM, Slice(layer=1, part="ffn"), 11)
    assert all(torch.equal(got[key], expected[key]) for key in expected)


def test_half_precision_files_become_the_model_s_dtype(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-gpt2")).bfloat16().save_pretrained(tmp_path)
    model, ref = catalogue.resolve(str(tmp_path))
    assert model.dtype == "bfloat16"
    assert weight_store.load(model, ref, Slice(layer=0, part="ffn"), 0)["up.weight"].dtype == torch.bfloat16
    single = model.model_copy(update={"dtype": "float32"})
    assert weight_store.load(single, ref, Slice(layer=0, part="ffn"), 0)["up.weight"].dtype == torch.float32


def test_a_missing_tensor_is_named(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-gpt2")).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    del tensors["transformer.h.1.mlp.c_fc.weight"]
    save_file(tensors, file)
    ref = WeightsRef(kind="directory", directory=str(tmp_path))
    with pytest.raises(SpecError, match=r"no tensor transformer\.h\.1\.mlp\.c_fc\.weight"):
        weight_store.load(model_of("tiny-gpt2"), ref, Slice(layer=1, part="ffn"), 0)


def test_a_tensor_of_another_shape_is_named_with_both_shapes(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-gpt2")).save_pretrained(tmp_path)
    wrong = model_of("tiny-gpt2").model_copy(update={"intermediate_size": 80})
    ref = WeightsRef(kind="directory", directory=str(tmp_path))
    with pytest.raises(SpecError, match=r"c_fc\.weight has shape \[32, 96\], expected \[32, 80\]"):
        weight_store.load(wrong, ref, Slice(layer=1, part="ffn"), 0)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not a header at all")
    with pytest.raises(SpecError, match=r"model\.safetensors: is no safetensors file"):
        weight_store.DirectorySource(str(tmp_path))


def test_pickled_weights_are_refused(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(SpecError, match=r"pytorch_model\.bin is a pickle.*refused"):
        weight_store.DirectorySource(str(tmp_path))


def test_an_index_may_not_point_outside_its_directory(tmp_path):
    index = {"weight_map": {"wte.weight": "../elsewhere.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(SpecError, match="which is no file of the directory"):
        weight_store.DirectorySource(str(tmp_path))


def test_a_tied_table_is_in_memory_once():
    store = weight_store.WeightStore(model_of("tiny-gpt2"), RANDOM, 11)
    store.load(Slice(layer=-1, part="embed"))
    store.load(Slice(layer=-1, part="lm_head"))
    table = store.get(Slice(layer=-1, part="embed"))["tokens"]
    assert store.get(Slice(layer=-1, part="lm_head"))["weight"] is table


def test_a_store_gives_the_cuts_of_what_it_holds_and_nothing_after_eviction():
    model = model_of("grouped")
    store = weight_store.WeightStore(model, RANDOM, 11)
    held = Slice(layer=0, part="attention", axis="heads", start=1, stop=6)
    store.load(held)
    wanted = Slice(layer=0, part="attention", axis="heads", start=2, stop=4)
    expected = weight_store.load(model, RANDOM, wanted, 11)
    for _ in range(2):
        got = store.get(wanted)
        assert all(torch.equal(got[key], expected[key]) for key in expected)
    with pytest.raises(PlanError, match=r"heads 0:2, is not resident"):
        store.get(Slice(layer=0, part="attention", axis="heads", start=0, stop=2))
    store.evict(held)
    with pytest.raises(PlanError, match="is not resident"):
        store.get(wanted)


@pytest.mark.parametrize(("part", "axis", "size"), [("attention", "heads", 4), ("ffn", "columns", 88)])
def test_an_empty_holding_serves_any_empty_cut(part, axis, size):
    def empty(place):
        return Slice(layer=0, part=part, axis=axis, start=place, stop=place)

    model = model_of("tiny-llama")
    store = WeightStore(model, RANDOM, 11)
    store.load(empty(2))
    for place in (0, 2, size):
        got, expected = store.get(empty(place)), weight_store.load(model, RANDOM, empty(place), 11)
        assert {key: x.shape for key, x in got.items()} == {key: x.shape for key, x in expected.items()}


def test_operations_on_a_cut_of_a_larger_holding_give_the_same_numbers():
    full = store_of("tiny-gpt2")
    store = weight_store.WeightStore(full.model, RANDOM, 11)
    store.load(Slice(layer=0, part="ffn", axis="columns", start=10, stop=90))
    x = torch.randn(1, 3, full.model.hidden_size)
    op = ops.FeedForward(0, 20, 61, True)
    torch.testing.assert_close(run(op, store, x), run(op, full, x))


@pytest.mark.parametrize("name", NAMES)
def test_sizes_count_what_is_loaded(name):
    store, model = store_of(name), model_of(name)
    tensors = {id(tensor): tensor for piece in whole_model(model) for tensor in store.get(piece).values()}
    assert num_parameters(model) == sum(tensor.numel() for tensor in tensors.values())


@pytest.mark.parametrize(
    "piece",
    [
        Slice(layer=2, part="ffn"),
        Slice(layer=0, part="attention", axis="heads", start=2, stop=5),
        Slice(layer=0, part="attention", axis="columns", start=0, stop=1),
    ],
)
def test_slices_that_a_model_does_not_have_are_refused(piece):
    with pytest.raises(PlanError, match="tiny-gpt2 has"):
        weight_store.load(model_of("tiny-gpt2"), RANDOM, piece, 0)


@pytest.mark.parametrize("name", [*HEADS_APART, "grouped"])
@pytest.mark.parametrize(("part", "axis"), [("attention", "heads"), ("ffn", "columns")])
def test_bare_slices_have_all_but_the_norm_and_the_output_bias(name, part, axis):
    model, store = model_of(name), WeightStore(model_of(name), RANDOM, 3)
    full = Slice(layer=0, part=part, axis=axis, start=1, stop=3)
    bare = full.model_copy(update={"bare": True})
    kept = {p.key for p in tensor_parts(model, full)} - {p.key for p in tensor_parts(model, bare)}
    after = {"post_norm.weight"} if model.sublayer_norm else set()
    assert after <= kept and "norm.weight" in kept
    assert kept - after <= {"norm.weight", "norm.bias", "o.bias", "down.bias"}
    assert weight_bytes(model, full) > weight_bytes(model, bare)
    store.load(bare)
    with pytest.raises(PlanError, match="is not resident"):
        store.get(full)
    store.load(full.model_copy(update={"stop": 4}))
    assert all(torch.equal(store.get(full)[key], tensor) for key, tensor in store.get(bare).items())
