"""Files of checkpoints: whole, and of one fit."""

import os

import pytest
import torch

from auxcst_sklearn._training import checkpoints
from auxcst_sklearn._training.checkpoints import Checkpoints, write_whole

KEY = {"X": "a", "width": "b"}


def test_the_last_two_are_kept_and_the_last_one_is_loaded(tmp_path):
    files = Checkpoints(tmp_path, 1, KEY, 3).next_training()
    assert files.load() is None
    for epoch in (1, 2, 10):
        files.save({"epoch": epoch, "weights": torch.arange(3.0)})

    state = files.load()

    assert state["epoch"] == 10
    assert state["weights"].tolist() == [0, 1, 2]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["fit.json", "fit.lock", "training1-00000002.pt", "training1-00000010.pt"]
    assert Checkpoints(tmp_path, 1, KEY, 4).seed == 3
    assert Checkpoints(tmp_path, 1, KEY, 4).next_training().load()["epoch"] == 10


def test_trainings_of_a_fit_have_files_of_their_own(tmp_path):
    of_fit = Checkpoints(tmp_path, 1, KEY, 0)
    of_fit.next_training().save({"epoch": 1})
    assert of_fit.next_training().load() is None


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")

    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    files = checkpoints.TrainingCheckpoints(tmp_path, "training1", 1)
    with pytest.warns(RuntimeWarning, match="was not written .*No space"):
        files.save({"epoch": 1})


def test_every_cut_is_found(tmp_path):
    files = Checkpoints(tmp_path, 1, KEY, 0).next_training()
    files.save({"epoch": 1})
    (path,) = tmp_path.glob("*.pt")
    content = path.read_bytes()
    for i in range(0, len(content), max(1, len(content) // 100)):
        path.write_bytes(content[:i])
        with pytest.warns(RuntimeWarning, match="damaged"):
            assert files.load() is None


def test_a_folder_is_for_one_fit_at_a_time(tmp_path):
    first = Checkpoints(tmp_path, 1, KEY, 0)
    with pytest.raises(ValueError, match=f"is in use: another fit, .* to {tmp_path} now"):
        Checkpoints(tmp_path, 1, KEY, 0)
    first.close()
    Checkpoints(tmp_path, 1, KEY, 0).close()
    with pytest.raises(ValueError, match="differs in width"):
        Checkpoints(tmp_path, 1, {**KEY, "width": "c"}, 0)
    Checkpoints(tmp_path, 1, KEY, 0)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"key": 3, "seed": 1}', b"\xff"])
def test_a_damaged_key_is_refused(content, tmp_path):
    (tmp_path / "fit.json").write_bytes(content)
    for _ in range(2):  # the folder stays free
        with pytest.raises((KeyError, TypeError, ValueError)):
            Checkpoints(tmp_path, 1, KEY, 0)


def test_code_in_a_file_is_not_run(tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    files = Checkpoints(tmp_path, 1, KEY, 0).next_training()
    torch.save({"epoch": Harm()}, tmp_path / "training1-00000001.pt")
    with pytest.raises(ValueError, match="is whole, but cannot be read here"):
        files.load()
    assert not (tmp_path / "harm").exists()
    assert (tmp_path / "training1-00000001.pt").exists()
