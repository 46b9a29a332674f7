"""Models that see: their rows, sizes, costs and files are those of `transformers`."""

import pytest
import torch
from PIL import Image
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Slice
from engine.domain.spec import WeightsRef
from engine.domain.vision import TowerSpec
from engine.models.families import hf_config, tensor_names
from engine.models.inputs import pictures
from engine.models.inputs.prompts import pixels_of, requests_of
from engine.models.inputs.text import encode
from engine.models.reference import transformers_outputs
from engine.models.reference.kept import Prompts
from engine.models.weights.store import WeightStore, load
from engine.ops import core as ops
from engine.ops.layout import tensor_parts, whole_model
from engine.ops.sizes import num_parameters, weight_bytes
from engine.ops.tensors import meta_of
from engine.ops.vision import Classify, EmbedImage, EmbedPrompt, ProjectImage, TowerBlock, image_ops
from tests.support.one_device import model_of, relative_error, run, spec_of, store_of

SEEING = ("tiny-vit", "tiny-llava")
TOWER = Slice(layer=-1, part="vision")


def rows_of(store, spec, request):
    """Hidden rows of a prompt with its picture: [1, T, D]."""
    x = torch.from_numpy(pixels_of(spec, request.index))[None]
    for op in image_ops(store.model):
        x = run(op, store, x)
    return run(EmbedPrompt(), store, torch.tensor([request.tokens]), x) if store.model.reads_text else x


def layers(store, x, caches):
    for layer in range(store.model.num_layers):
        x = run(ops.Block(layer, None if caches is None else "c"), store, x, caches=caches)
    return x


def answer(store, spec, request):
    """Class logits [C], or greedy logits [new_tokens, V]."""
    if not store.model.reads_text:
        return run(Classify(), store, layers(store, rows_of(store, spec, request), None))[0]
    caches, logits = {}, []
    x = rows_of(store, spec, request)
    for _ in range(spec.workload.new_tokens):
        logits.append(run(ops.Head(), store, layers(store, x, caches))[0])
        at = len(request.tokens) + len(logits) - 1
        x = run(ops.Embed(at), store, logits[-1].argmax().reshape(1, 1))
    return torch.stack(logits)


def seeing_spec(name, **workload):
    if name == "tiny-vit":
        return spec_of(name, **({"new_tokens": 0, "requests": 3} | workload))
    return spec_of(name, **({"prompt_tokens": 7, "new_tokens": 5, "requests": 3} | workload))


@pytest.fixture
def picture(tmp_path):
    file = tmp_path / "picture.png"
    Image.radial_gradient("L").resize((50, 30)).save(file)
    return file.read_bytes()


@pytest.mark.parametrize("name", SEEING)
@pytest.mark.parametrize("given", [False, True])
def test_classes_and_greedy_logits_are_those_of_transformers(name, given, picture):
    spec, store = seeing_spec(name), store_of(name)
    if given:
        image = pictures.encoded(spec.model.vision, picture, "here")
        spec = spec.model_copy(update={"workload": spec.workload.model_copy(update={"image": image})})
    theirs = transformers_outputs.compute(spec)
    for request in requests_of(spec):
        kind = "logits" if spec.workload.new_tokens else "hidden"
        expected = theirs[f"{kind}.{request.index}"]
        ours = answer(store, spec, request)
        assert ours.shape == expected.shape
        assert relative_error(ours, expected) < 1e-5


@pytest.mark.parametrize("name", SEEING)
def test_what_is_seen_changes_the_answer(name):
    """Otherwise a run could ignore the pictures without failing a test."""
    spec, store = seeing_spec(name), store_of(name)
    request = requests_of(spec)[0]
    other = request.model_copy(update={"index": 1})
    first, second = answer(store, spec, request), answer(store, spec, other)
    assert relative_error(first, second) > 0.02


def test_the_reference_is_another_one_for_another_picture(picture):
    spec = seeing_spec("tiny-vit")
    image = pictures.encoded(spec.model.vision, picture, "here")
    given = spec.model_copy(update={"workload": spec.workload.model_copy(update={"image": image})})
    specs = (spec, given, spec.model_copy(update={"seed": 12}))
    assert len({Prompts(one).folder(requests_of(one)[0]) for one in specs}) == 3
    assert len({Prompts(spec).folder(request) for request in requests_of(spec)}) == len(requests_of(spec))
    assert len({Prompts(given).folder(request) for request in requests_of(given)}) == 1


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("vit-base", 86_567_656),
        # the library counts 7 063 427 072: the tower's last layer and its norm are not computed, not held
        ("llava-7b", 7_063_427_072 - 12_596_224 - 2_048),
    ],
)
def test_models_have_as_many_parameters_as_published(name, count):
    assert num_parameters(model_of(name)) == count


@pytest.mark.parametrize(
    ("name", "rows", "prompt"),
    [
        ("vit-base", 197, 197),
        ("llava-7b", 576, 592),
        ("llava-13b", 576, 592),
        ("tiny-llava", 9, 25),
    ],
)
def test_a_picture_has_a_row_for_each_patch(name, rows, prompt):
    model = model_of(name)
    workload = {"prompt_tokens": 16} if model.reads_text else {"new_tokens": 0}
    assert model.image_rows == rows
    assert len(requests_of(spec_of(name, **workload))[0].tokens) == prompt


def test_the_tower_stops_at_the_features_that_are_used():
    tower = model_of("llava-7b").vision.tower
    assert (tower.num_layers, tower.feature_layer, tower.used_layers) == (24, -2, 23)
    keys = {part.key for part in tensor_parts(model_of("tiny-llava"), TOWER)}
    assert {"0.attention.q.weight", "1.ffn.down.bias"} <= keys
    assert not any(key.startswith("2.") for key in keys)
    with pytest.raises(ValueError, match="before the first"):
        TowerSpec(
            num_layers=3, hidden_size=8, num_heads=2, intermediate_size=8, feature_layer=-4, image_token=5
        )


def operations(model):
    """One of every kind that `model` can do, with the inputs."""
    pixels = torch.randn(2, *model.vision.pixel_shape)
    yield EmbedImage(), (pixels,)
    if not model.has_tower:
        yield Classify(), (torch.randn(2, model.image_rows, model.hidden_size),)
        return
    x = torch.randn(2, model.image_rows + 1, model.vision.tower.hidden_size)
    yield TowerBlock(1), (x,)
    yield ProjectImage(), (x,)
    tokens = torch.full((2, model.image_rows + 4), model.num_text_tokens)
    tokens[:, -4:] = 3
    yield EmbedPrompt(), (tokens, torch.randn(2, model.image_rows, model.hidden_size))


@pytest.mark.parametrize("name", SEEING)
def test_products_and_shapes_are_what_torch_does(name):
    store = store_of(name)
    for op, inputs in operations(store.model):
        cost = op.cost(store.model, tuple(meta_of(x) for x in inputs), 0)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            output = run(op, store, *inputs)
        counted = sum(kernel.flops for kernel in cost.kernels if kernel.kind == "product")
        assert counted == counter.get_total_flops(), op
        assert meta_of(output) == cost.output, op


@pytest.mark.parametrize("name", SEEING)
def test_an_operation_runs_with_just_the_slices_that_it_names(name):
    full = store_of(name)
    for op, inputs in operations(full.model):
        store = WeightStore(full.model, full.ref, full.seed)
        for piece in op.slices(full.model):
            store.load(piece)
        assert torch.equal(run(op, store, *inputs), run(op, full, *inputs)), op


def test_an_answer_may_have_the_image_token_too():
    store = store_of("tiny-llava")
    model = store.model
    image = torch.randn(1, model.image_rows, model.hidden_size)
    tokens = torch.tensor([[model.num_text_tokens] * model.image_rows + [5, model.num_text_tokens]])
    rows = run(EmbedPrompt(), store, tokens, image)
    assert torch.equal(rows[:, : model.image_rows], image)
    assert torch.equal(rows[:, -2:], run(ops.Embed(0), store, tokens[:, -2:]))


@pytest.mark.parametrize("name", SEEING)
def test_files_of_the_library_are_read(name, tmp_path):
    spec = seeing_spec(name)
    transformers_outputs.library_model(spec).save_pretrained(tmp_path)
    for piece in whole_model(spec.model):
        read = load(spec.model, WeightsRef(kind="directory", directory=str(tmp_path)), piece, 0)
        drawn = load(spec.model, WeightsRef(), piece, spec.seed)
        assert read.keys() == drawn.keys()
        assert all(torch.equal(read[key], drawn[key]) for key in read)


@pytest.mark.parametrize(
    ("name", "tensor", "stored"),
    [
        ("vit-base", "layers.3.attention.q.weight", "vit.encoder.layer.3.attention.attention.query.weight"),
        ("vit-base", "layers.3.attention.o.bias", "vit.encoder.layer.3.attention.output.dense.bias"),
        ("vit-base", "layers.3.ffn.down.weight", "vit.encoder.layer.3.output.dense.weight"),
        ("vit-base", "layers.3.ffn.norm.weight", "vit.encoder.layer.3.layernorm_after.weight"),
        ("vit-base", "embed.cls", "vit.embeddings.cls_token"),
        ("vit-base", "embed.patches.weight", "vit.embeddings.patch_embeddings.projection.weight"),
        ("vit-base", "lm_head.classifier.bias", "classifier.bias"),
        (
            "llava-7b",
            "layers.31.attention.q.weight",
            "language_model.model.layers.31.self_attn.q_proj.weight",
        ),
        ("llava-7b", "lm_head.weight", "language_model.lm_head.weight"),
        ("llava-7b", "embed.tokens", "language_model.model.embed_tokens.weight"),
        (
            "llava-7b",
            "vision.layers.22.ffn.up.bias",
            "vision_tower.vision_model.encoder.layers.22.mlp.fc1.bias",
        ),
        ("llava-7b", "vision.cls", "vision_tower.vision_model.embeddings.class_embedding"),
        ("llava-7b", "vision.norm.weight", "vision_tower.vision_model.pre_layrnorm.weight"),
        ("llava-7b", "vision.projector.up.weight", "multi_modal_projector.linear_1.weight"),
    ],
)
def test_tensors_are_found_under_the_names_of_the_published_files(name, tensor, stored):
    model = model_of(name)
    assert stored in tensor_names.candidates(model, tensor_names.stored_as(model, tensor))


@pytest.mark.parametrize(
    ("name", "workload", "match"),
    [
        ("tiny-gpt2", {"prompt_tokens": 4, "image": "AA"}, "tiny-gpt2 sees no pictures"),
        ("tiny-vit", {"prompt_tokens": 4, "new_tokens": 0}, "sees a picture and reads no text"),
        ("tiny-vit", {"new_tokens": 2}, "sees a picture and reads no text"),
        ("tiny-llava", {"new_tokens": 2}, "exactly one of prompt and prompt_tokens"),
        ("tiny-llava", {"prompt_tokens": 60}, "69 prompt tokens"),
        ("tiny-llava", {"prompt_tokens": 4, "image": "?"}, "workload.image: is no base64"),
    ],
)
def test_workloads_that_a_model_cannot_do_are_refused(name, workload, match):
    with pytest.raises(SpecError, match=match):
        requests_of(spec_of(name, **workload))


def test_text_never_has_the_token_of_pictures():
    model = model_of("tiny-llava")
    assert model.num_text_tokens == 100 and max(encode(model, WeightsRef(), "d" * 3 + "e")) < 100
    spec = seeing_spec("tiny-llava", prompt_tokens=40, new_tokens=1, requests=20)
    for request in requests_of(spec):
        assert request.tokens.count(100) == 9 and request.tokens[:9] == (100,) * 9


def test_the_tower_is_one_part_that_only_some_models_have():
    model = model_of("tiny-llava")
    assert weight_bytes(model, TOWER) == 4 * sum(part.num_elements for part in tensor_parts(model, TOWER))
    for name in ("tiny-vit", "tiny-gpt2"):
        with pytest.raises(PlanError, match="has no tower"):
            weight_bytes(model_of(name), TOWER)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"vision_config": {"model_type": "siglip_vision_model"}}, "'siglip_vision_model' is no known tower"),
        ({"vision_feature_select_strategy": "full"}, "'full' is not supported"),
        ({"vision_feature_layer": [-2, -5]}, "feature_layer"),
        ({"projector_hidden_act": "mish"}, "projector_hidden_act: 'mish' is not one of gelu"),
    ],
)
def test_towers_that_cannot_be_run_are_refused_with_the_reason(change, match):
    config = hf_config.config_of_spec(model_of("tiny-llava")) | change
    with pytest.raises(SpecError, match=match):
        hf_config.spec_of_config("x", config, "config.json")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"qkv_bias": False}, "qkv_bias: false is not supported"),
        ({"num_channels": 1}, "num_channels: 1 is not supported"),
        ({"image_size": 25}, "25 is no multiple of patch_size 8"),
    ],
)
def test_vits_that_cannot_be_run_are_refused_with_the_reason(change, match):
    config = hf_config.config_of_spec(model_of("tiny-vit")) | change
    with pytest.raises(SpecError, match=match):
        hf_config.spec_of_config("x", config, "config.json")


def test_a_vit_without_a_classifier_gives_hidden_states():
    model = model_of("tiny-vit").model_copy(update={"num_classes": 0})
    assert hf_config.config_of_spec(model)["architectures"] == ["ViTModel"]
    spec = seeing_spec("tiny-vit").model_copy(update={"model": model})
    theirs = transformers_outputs.compute(spec)["hidden.0"]
    store = store_of("tiny-vit")
    ours = run(ops.FinalHidden(), store, layers(store, rows_of(store, spec, requests_of(spec)[0]), None))
    assert relative_error(ours[0], theirs) < 1e-5
