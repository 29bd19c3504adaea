import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

from auxcst_sklearn.datasets import load_image_folder

Image = pytest.importorskip("PIL.Image")


def pixels(seed, height=6, width=5):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def save(file, image):
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(file)


@pytest.fixture
def folder(tmp_path):
    """Three classes of PNG files, and things that are no images of a class."""
    root = tmp_path / "images"
    for seed, name in enumerate(["dog/b.png", "dog/a.PNG", "cat/z.png", "cat-big/c.png"]):
        save(root / name, pixels(seed))
    save(root / "cat" / ".hidden.png", pixels(9))
    save(root / ".hidden" / "a.png", pixels(9))
    save(root / "loose.png", pixels(9))
    save(root / "dog" / "deeper" / "a.png", pixels(9))
    (root / "dog" / "notes.txt").write_text("no image")
    return root


def test_reads_class_folders_in_order(folder):
    bunch = load_image_folder(folder)
    assert bunch.filenames.tolist() == ["cat/z.png", "cat-big/c.png", "dog/a.PNG", "dog/b.png"]
    assert bunch.target_names.tolist() == ["cat", "cat-big", "dog"]
    assert bunch.target.tolist() == [0, 1, 2, 2]
    assert bunch.images.dtype == np.uint8
    expected = np.stack([pixels(seed) for seed in (2, 3, 1, 0)]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(bunch.images, expected)


def test_threads_change_nothing(tmp_path):
    for seed in range(150):  # more than two batches of tasks
        save(tmp_path / f"class{seed % 3}" / f"{seed:03d}.png", pixels(seed))
    expected = load_image_folder(tmp_path, n_jobs=1).images
    np.testing.assert_array_equal(load_image_folder(tmp_path, n_jobs=2).images, expected)


def test_deeper_folders(tmp_path):
    for seed, part in enumerate(["train", "test"]):
        save(tmp_path / part / "cat" / "a.png", pixels(seed))
    bunch = load_image_folder(tmp_path / "test")
    assert bunch.filenames.tolist() == ["cat/a.png"]
    np.testing.assert_array_equal(bunch.images[0], pixels(1).transpose(2, 0, 1))
    with pytest.raises(FileNotFoundError, match="no images in .*pass the folder that holds them"):
        load_image_folder(tmp_path)


@pytest.mark.parametrize(("image_size", "shape"), [(4, (4, 4)), ((2, 3), (2, 3))])
def test_resizes(tmp_path, image_size, shape):
    save(tmp_path / "flat" / "a.png", np.full((8, 4, 3), 7, np.uint8))
    # Left half black, right half white: in that order after resizing too.
    halves = np.zeros((5, 12, 3), np.uint8)
    halves[:, 6:] = 255
    save(tmp_path / "flat" / "b.png", halves)
    images = load_image_folder(tmp_path, image_size).images
    assert images.shape == (2, 3, *shape)
    assert np.all(images[0] == 7)
    assert np.all(images[1][..., 0] < 64)
    assert np.all(images[1][..., -1] > 191)


def test_jpeg_and_grey_become_rgb(tmp_path):
    grey = np.full((8, 8), 100, np.uint8)
    save(tmp_path / "grey" / "a.jpeg", grey)
    save(tmp_path / "grey" / "b.JPG", np.stack([grey] * 3, axis=-1))
    images = load_image_folder(tmp_path).images
    assert images.shape == (2, 3, 8, 8)
    assert np.abs(images.astype(int) - 100).max() <= 2


def test_different_sizes_need_image_size(folder):
    save(folder / "dog" / "wide.png", pixels(0, 6, 9))
    with pytest.raises(ValueError, match=r"sizes differ.*image_size="):
        load_image_folder(folder)
    assert load_image_folder(folder, 3).images.shape == (5, 3, 3, 3)


@pytest.mark.parametrize("image_size", [0, -1, (4,), (4, 0), (4, 2.5), (1, 2, 3)])
def test_rejects_image_size(folder, image_size):
    with pytest.raises(ValueError, match="image_size should be a positive int"):
        load_image_folder(folder, image_size)


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
@pytest.mark.parametrize("kept", [0.0, 0.5])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_corrupt_image_is_named(folder, name, kept, n_jobs):
    file = folder / "elk" / name
    save(file, pixels(0, 40, 40))
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ValueError, match=f"elk/{name} cannot be read.*fresh copy"):
        load_image_folder(folder, 4, n_jobs=n_jobs)


def test_sixteen_bits_are_refused(tmp_path):
    save(tmp_path / "deep" / "a.png", np.full((4, 4), 4096, np.uint16))
    with pytest.raises(ValueError, match="deep/a.png has more than 8 bits"):
        load_image_folder(tmp_path)


def test_no_folder(tmp_path):
    (tmp_path / "images.tar").write_bytes(b"an archive")
    for name in ("images.tar", "nowhere"):
        with pytest.raises(FileNotFoundError, match=f"no images in .*{name}.*unpack an archive"):
            load_image_folder(tmp_path / name)


def test_verbose_shows_progress(folder, capsys):
    with parallel_config(verbose=1):
        load_image_folder(folder)
    assert "4 out of   4" in capsys.readouterr().err
    load_image_folder(folder)
    assert capsys.readouterr().err == ""


def test_without_pillow(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'auxcst_sklearn\[images\]'"):
        load_image_folder(folder)


# --- pixels as viewers show them ------------------------------------------------------------------


def encode(file, image, **options):
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file, **options)


def orientation(code):
    exif = Image.Exif()
    exif[0x0112] = code
    return exif


@pytest.mark.parametrize("suffix", [".png", ".webp", ".jpg"])
@pytest.mark.parametrize("code", range(1, 9))
def test_images_are_turned_as_their_metadata_tell(tmp_path, suffix, code):
    stored = np.zeros((16, 24, 3), np.uint8)
    stored[:8, :8], stored[:8, 8:16], stored[8:, :8] = 250, 150, 80
    shown = {  # by the EXIF standard: where its first row and first column belong
        1: stored,
        2: stored[:, ::-1],
        3: stored[::-1, ::-1],
        4: stored[::-1],
        5: stored.transpose(1, 0, 2),
        6: stored.transpose(1, 0, 2)[:, ::-1],
        7: stored[::-1, ::-1].transpose(1, 0, 2),
        8: stored.transpose(1, 0, 2)[::-1],
    }[code]
    options = {"quality": 100} if suffix == ".jpg" else {"lossless": True}
    encode(
        tmp_path / "a" / f"1{suffix}", Image.fromarray(stored), exif=orientation(code), **options
    )

    (found,) = load_image_folder(tmp_path).images.astype(int)

    assert found.shape == (3, *shown.shape[:2])
    assert np.abs(found - shown.transpose(2, 0, 1)).max() <= 3


def test_images_are_turned_before_they_are_cropped(tmp_path):
    stored = np.zeros((8, 16, 3), np.uint8)
    stored[:, 12:] = 255  # the lower end as shown, outside the middle
    encode(tmp_path / "in" / "a" / "1.png", Image.fromarray(stored), exif=orientation(6))

    assert not load_image_folder(tmp_path / "in", 8, resize="crop").images.any()
    whole = load_image_folder(tmp_path / "in", (16, 8)).images[0, 0]
    assert whole[13:].min() == 255
    assert whole[:11].max() == 0


@pytest.mark.parametrize("exif", [b"Exif\0\0no metadata", b"Exif\0\0MM", orientation(99).tobytes()])
def test_metadata_that_cannot_be_read_are_ignored(tmp_path, exif):
    encode(tmp_path / "a" / "1.png", Image.fromarray(pixels(0)), exif=exif)

    np.testing.assert_array_equal(
        load_image_folder(tmp_path).images[0], pixels(0).transpose(2, 0, 1)
    )


def test_an_image_is_turned_though_its_other_metadata_are_broken(tmp_path):
    exif = orientation(3)
    exif[0x011A] = 72.0
    broken = exif.tobytes().replace(b"\x01\x1a\x00\x05", b"\x01\x1a\x00\x03")
    assert broken != exif.tobytes()
    encode(tmp_path / "a" / "1.png", Image.fromarray(pixels(0)), exif=broken)

    expected = pixels(0)[::-1, ::-1].transpose(2, 0, 1)
    np.testing.assert_array_equal(load_image_folder(tmp_path).images[0], expected)


def half_transparent(mode):
    """One image of each way to be transparent: left half with alpha 0, right half opaque."""
    alpha = np.zeros((2, 4), np.uint8)
    alpha[:, 2:] = 255
    if mode in ("RGBA", "LA"):
        channels = len(mode) - 1
        values = np.dstack([np.full((2, 4), 40, np.uint8)] * channels + [alpha])
        return Image.fromarray(values, mode), {}
    image = Image.fromarray(np.where(alpha, 1, 0).astype(np.uint8), "L")
    if mode == "L":
        return image.point([7, 40] * 128), {"transparency": 7}
    if mode == "RGB":
        return image.point([7, 40] * 128).convert("RGB"), {"transparency": (7, 7, 7)}
    image = image.convert("P")
    image.putpalette([7, 7, 7, 40, 40, 40])
    return image, {"transparency": 0 if mode == "P" else b"\0\xff"}


@pytest.mark.parametrize("mode", ["RGBA", "LA", "L", "RGB", "P", "P with an alpha of each color"])
def test_transparent_pixels_are_white(tmp_path, mode):
    image, options = half_transparent(mode)
    encode(tmp_path / "a" / "1.png", image, **options)

    images = load_image_folder(tmp_path).images

    assert (images[..., :2] == 255).all()
    assert (images[..., 2:] == 40).all()


def test_half_transparent_pixels_mix_with_white(tmp_path):
    encode(tmp_path / "a" / "1.png", Image.new("RGBA", (2, 2), (255, 0, 0, 51)))
    encode(tmp_path / "a" / "1.webp", Image.new("RGBA", (2, 2), (255, 0, 0, 51)), lossless=True)

    images = load_image_folder(tmp_path).images

    assert np.abs(images.astype(int) - np.array([255, 204, 204])[:, None, None]).max() <= 1


@pytest.mark.parametrize(("bits", "value"), [(1, 1), (2, 1), (4, 9), (8, 200)])
def test_grey_of_few_bits_has_its_transparent_value(tmp_path, bits, value):
    """As programs write it that make files small; Pillow scales the pixels and not this value."""

    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", 8 // bits, 1, bits, 0, 0, 0, 0)
    row = bytes([0, value << (8 - bits)])  # the first pixel; all others are black
    parts = [(b"IHDR", header), (b"tRNS", struct.pack(">H", value)), (b"IDAT", zlib.compress(row))]
    file = tmp_path / "a" / "1.png"
    file.parent.mkdir()
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in [*parts, (b"IEND", b"")])
    )

    (image,) = load_image_folder(tmp_path).images

    np.testing.assert_array_equal(image[:, 0, 0], [255, 255, 255])
    assert not image[:, 0, 1:].any()


# --- sizes, memory maps and broken files --------------------------------------------------------


def test_crop_keeps_the_middle_in_its_aspect_ratio(tmp_path):
    wide = np.zeros((4, 8, 3), np.uint8)
    wide[:, :2], wide[:, 6:] = 100, 200  # outside the middle
    save(tmp_path / "a" / "wide.png", wide)
    save(tmp_path / "a" / "tall.png", wide.transpose(1, 0, 2))
    assert not load_image_folder(tmp_path, 4, resize="crop").images.any()
    assert load_image_folder(tmp_path, 4).images.any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_memmap_holds_the_same_images(folder, tmp_path, n_jobs):
    file = tmp_path / "images.npy"
    bunch = load_image_folder(folder, 8, memmap=file, n_jobs=n_jobs)
    assert isinstance(bunch.images, np.memmap)
    expected = load_image_folder(folder, 8)
    np.testing.assert_array_equal(np.load(file), expected.images)
    np.testing.assert_array_equal(bunch.target, expected.target)
