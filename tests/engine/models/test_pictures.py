"""From a person's file to a model's pixels: the numbers of the library's processors, and no surprises."""

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from engine.domain.errors import SpecError
from engine.domain.vision import VisionSpec
from engine.models import catalogue
from engine.models.inputs import pictures


def picture(width, height):
    """Smooth colours with edges in them: resampling shows."""
    y, x = np.mgrid[:height, :width]
    colours = np.stack([x * 255 // width, y * 255 // height, (x // 7 + y // 5) % 2 * 255], axis=-1)
    return Image.fromarray(colours.astype(np.uint8))


def file_of(image, kind="PNG"):
    out = BytesIO()
    image.save(out, format=kind)
    return out.getvalue()


def vision_of(name):
    return catalogue.resolve(name)[0].vision


def processed(name, image):
    """What the processor of `transformers` gives, without torchvision."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    size = vision_of(name).image_size
    if name == "vit-base":
        processor = ViTImageProcessorPil(size={"height": size, "width": size})
    else:
        processor = CLIPImageProcessorPil(
            size={"shortest_edge": size}, crop_size={"height": size, "width": size}
        )
    return np.asarray(processor(image, return_tensors="np")["pixel_values"][0])


@pytest.mark.parametrize("name", ["vit-base", "llava-7b"])
@pytest.mark.parametrize("size", [(500, 341), (300, 720), (336, 336), (100, 60), (337, 1001)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_pixels_are_those_of_the_library_s_processor(name, size, kind):
    vision, data = vision_of(name), file_of(picture(*size), kind)
    kept = pictures.encoded(vision, data, "here")
    ours = pictures.pixels(vision, pictures.picture_of(vision, kept))
    theirs = processed(name, Image.open(BytesIO(data)).convert("RGB"))
    assert ours.dtype == np.float32 and ours.shape == theirs.shape == vision.pixel_shape
    assert np.abs(ours - theirs).max() < 1e-5


@pytest.mark.parametrize("name", ["vit-base", "llava-7b"])
def test_a_kept_picture_is_kept_as_it_is_once_more(name):
    vision = vision_of(name)
    kept = pictures.encoded(vision, file_of(picture(500, 300)), "here")
    assert pictures.encoded(vision, pictures.of_base64(kept, "here"), "here") == kept


def test_a_photograph_that_lies_on_its_side_is_put_upright():
    image = Image.new("RGB", (40, 20), "blue")
    image.paste("red", (0, 0, 20, 20))
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was turned: left is up
    out = BytesIO()
    image.save(out, format="JPEG", exif=exif)
    colours = pictures.picture_of(TINY, pictures.encoded(TINY, out.getvalue(), "here"))
    assert colours[2, 12, 0] > 200 and colours[21, 12, 2] > 200


TINY = VisionSpec(
    image_size=24, patch_size=8, resample="bilinear", crop=False, mean=(0.5,) * 3, std=(0.5,) * 3
)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK"])
def test_every_kind_of_colours_becomes_red_green_and_blue(mode):
    data = file_of(picture(30, 20).convert(mode), "JPEG" if mode == "CMYK" else "PNG")
    assert pictures.picture_of(TINY, pictures.encoded(TINY, data, "here")).shape == (24, 24, 3)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "neither PNG nor JPEG"),
        (b"hello", "neither PNG nor JPEG"),
        (file_of(picture(30, 20), "GIF"), "neither PNG nor JPEG"),
        (file_of(picture(30, 20), "BMP"), "neither PNG nor JPEG"),
        (file_of(picture(300, 200))[:700], "damaged"),
        (file_of(picture(300, 200), "JPEG")[:2000], "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "neither PNG nor JPEG|damaged"),
        (b"x" * (pictures.MAX_FILE_BYTES + 1), "larger than 10 MB"),
    ],
)
def test_what_is_no_picture_is_refused_with_the_reason(data, match):
    with pytest.raises(SpecError, match=rf"--image cat: .*({match}).*: give a PNG or JPEG file"):
        pictures.encoded(TINY, data, "--image cat")


@pytest.mark.parametrize("size", [8_000, 14_000])  # Pillow itself refuses more than 178,956,970 pixels
def test_a_picture_that_would_fill_the_memory_is_refused_before_it_is_decoded(size):
    bomb = file_of(Image.new("1", (size, size)))
    assert len(bomb) < pictures.MAX_FILE_BYTES
    with pytest.raises(SpecError, match=f"more than {pictures.MAX_PIXELS} pixels"):
        pictures.encoded(TINY, bomb, "here")


@pytest.mark.parametrize(
    ("image", "match"),
    [
        ("not base64!", "no base64"),
        (base64.b64encode(b"hello").decode(), "neither PNG nor JPEG"),
        (base64.b64encode(file_of(picture(23, 24))).decode(), "is 23 x 24 pixels, expected 24 of each edge"),
    ],
)
def test_a_spec_s_picture_has_the_model_s_size(image, match):
    with pytest.raises(SpecError, match=match):
        pictures.picture_of(TINY, image)


def test_random_pictures_follow_from_seed_and_request():
    first = pictures.random_picture(TINY, 7, 0)
    assert first.shape == (24, 24, 3) and first.dtype == np.uint8
    assert np.array_equal(first, pictures.random_picture(TINY, 7, 0))
    assert not np.array_equal(first, pictures.random_picture(TINY, 7, 1))
    assert not np.array_equal(first, pictures.random_picture(TINY, 8, 0))
    assert len(np.unique(first.reshape(-1, 3), axis=0)) == pictures.MOSAIC**2
