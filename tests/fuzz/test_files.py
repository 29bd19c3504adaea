"""Damaged files: data of the size that was written, or an error that names the file."""

from __future__ import annotations

import shutil
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxcst_sklearn.datasets import load_image_folder
from tests.datasets.test_image_folder import pack, pixels, save
from tests.fuzz.conftest import examples

MOST_BYTES = 60_000_000  # of an error; the files have some kilobytes


def write_folder(home):
    for i, name in enumerate(["a/1.png", "a/2.png", "b/1.jpg"]):
        save(home / "images" / name, pixels(i))


def write_archive(home, mode):
    write_folder(home)
    pack(home / "images.tar", home / "images", mode)
    shutil.rmtree(home / "images")


FORMS = {
    "images": (write_folder, lambda h: load_image_folder(h / "images")),
    "archive": (lambda h: write_archive(h, "w"), lambda h: load_image_folder(h / "images.tar")),
    "xz": (lambda h: write_archive(h, "w:xz"), lambda h: load_image_folder(h / "images.tar")),
}


@pytest.fixture(scope="module", params=FORMS)
def form(request, tmp_path_factory):
    write, read = FORMS[request.param]
    home = tmp_path_factory.mktemp("form")
    write(home)
    return home, {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}, read


@examples(8)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_damaged_bytes(form, data):
    home, files, read = form
    path = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[path])
    start = data.draw(st.integers(0, min(len(content) - 1, 600)) | st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip", "overwrite", "insert"]))
    if kind == "cut":
        del content[start:]
    elif kind == "flip":
        content[start] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "overwrite":
        content[start : start + 4] = data.draw(st.sampled_from([b"\xff" * 4, b"\x00" * 4, b"\x7f"]))
    else:
        content[start:start] = data.draw(st.binary(min_size=1, max_size=9))
    before = set(home.rglob("*"))
    path.write_bytes(content)
    tracemalloc.start()
    try:
        found = read(home)
        assert len(found.target) <= 40
        assert len(found.images) == len(found.target)
    except (ValueError, OSError) as error:
        if not any(part in str(error) for part in (path.name, home.name)):
            raise
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        path.write_bytes(files[path])
    assert peak < MOST_BYTES
    assert set(home.rglob("*")) == before
