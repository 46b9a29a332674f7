"""Processor files beside weights: taken over, or refused; as the library itself writes them."""

import json

import numpy as np
import pytest
from test_pictures import file_of, picture

from engine.domain.errors import SpecError
from engine.models import catalogue
from engine.models.inputs import pictures
from engine.models.inputs.processor import adapted
from engine.models.reference import transformers_outputs
from engine.models.weights.directory import read_spec
from tests.support.one_device import spec_of


@pytest.fixture
def directory(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-vit", new_tokens=0)).config.save_pretrained(tmp_path)
    return tmp_path


def processor_of(**settings):
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": 24, "width": 24}, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"image_mean": [0.4, 0.45, 0.5], "image_std": [0.2, 0.25, 0.3]},
        {"resample": 3},
        {"do_center_crop": True, "crop_size": {"height": 24, "width": 24}},
    ],
)
def test_a_directory_s_processor_decides_what_the_model_gets(directory, settings):
    processor = processor_of(**settings)
    processor.save_pretrained(directory)
    vision = read_spec(directory, "mine").vision
    image = picture(50, 30)
    ours = pictures.pixels(
        vision, pictures.picture_of(vision, pictures.encoded(vision, file_of(image), "here"))
    )
    theirs = np.asarray(processor(image, return_tensors="np")["pixel_values"][0])
    assert np.abs(ours - theirs).max() < 1e-5


def test_the_processor_of_version_5_is_inside_that_of_all_inputs(directory):
    inside = {"image_processor": {"image_mean": [0.1, 0.2, 0.3]}, "processor_class": "LlavaProcessor"}
    (directory / "processor_config.json").write_text(json.dumps(inside))
    assert read_spec(directory, "mine").vision.mean == (0.1, 0.2, 0.3)


def test_the_published_processors_are_what_the_catalogue_supposes(directory):
    """CLIP's preprocessor_config.json as LLaVA 1.5 has it, next to tiny weights of the same kind."""
    vision = catalogue.resolve("tiny-llava")[0].vision
    transformers_outputs.library_model(spec_of("tiny-llava", prompt_tokens=5)).config.save_pretrained(
        directory
    )
    published = {
        "crop_size": {"height": 24, "width": 24},
        "do_center_crop": True,
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "resample": 3,
        "size": {"shortest_edge": 24},
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "rescale_factor": 0.00392156862745098,
    }
    (directory / "preprocessor_config.json").write_text(json.dumps(published))
    assert read_spec(directory, "mine").vision == vision


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"do_normalize": False}, "do_normalize: false is not supported"),
        ({"do_rescale": False}, "do_rescale: false is not supported"),
        ({"rescale_factor": 1.0}, "rescale_factor: 1.0 is not supported, expected 1/255"),
        ({"size": {"height": 32, "width": 32}}, "size: .*32.* is not supported, expected 24"),
        ({"size": 30}, "size: 30 is not supported, expected 24"),
        ({"resample": 1}, "resample: 1 is not supported"),
        ({"image_mean": [0.5]}, r"image_mean: \[0.5\] is not supported, expected 3 numbers"),
        ({"image_mean": "x"}, "image_mean: got 'x', expected a list"),
        ({"image_std": [0.5, 0.5, 0.0]}, "image_std: .* is not above 0"),
        ({"size": {"shortest_edge": 24}}, "do_center_crop: null is not supported, expected true"),
        ({"size": {"longest_edge": 24}}, "size: .* is not supported, expected height and width, or shortest"),
        ({"size": [24, 24]}, "size: got .*, expected an integer or an object or null"),
        ({"do_pad": True}, "do_pad: true is not supported, expected false"),
        ({"resample": True}, "resample: got true, expected an integer or null"),
        ({"image_processor": [1]}, "image_processor: got .*, expected an object"),
    ],
)
def test_steps_that_are_not_done_here_are_refused_with_the_reason(directory, settings, match):
    (directory / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(SpecError, match=rf"preprocessor_config.json, .*{match}"):
        read_spec(directory, "mine")


def test_a_crop_after_both_edges_are_scaled_changes_nothing(directory):
    """CLIP's processor with the size of both edges: the picture is stretched, and nothing is left to crop."""
    vision = catalogue.resolve("tiny-llava")[0].vision
    edges = {"height": 24, "width": 24}
    changed = adapted(vision, {"size": edges, "crop_size": edges, "do_center_crop": True}, "here")
    assert vision.crop and not changed.crop
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    image = picture(50, 30)
    theirs = CLIPImageProcessorPil(size=edges, crop_size=edges)(image, return_tensors="np")["pixel_values"][0]
    encoded = pictures.encoded(changed, file_of(image), "here")
    ours = pictures.pixels(changed, pictures.picture_of(changed, encoded))
    assert np.abs(ours - np.asarray(theirs)).max() < 1e-5


def test_a_text_model_s_processor_file_is_none_of_our_business(tmp_path):
    transformers_outputs.library_model(spec_of("tiny-gpt2")).config.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"do_rescale": False}))
    assert read_spec(tmp_path, "mine").vision is None
