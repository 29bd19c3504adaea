"""Files of checkpoints: whole, and of one fit."""

import os

import pytest
import torch

from auxcst_sklearn._training.checkpoints import Checkpoints, write_whole

KEY = {"X": "a", "width": "b"}


def test_the_last_two_are_kept_and_the_last_one_is_loaded(tmp_path):
    files = Checkpoints(tmp_path, 1, KEY, 3)
    assert files.state is None
    for epoch in (1, 2, 10):
        files.save({"epoch": epoch, "weights": torch.arange(3.0)})
    files.close()

    again = Checkpoints(tmp_path, 1, KEY, 4)
    state = again.state

    assert again.seed == 3
    assert state["epoch"] == 10
    assert state["weights"].tolist() == [0, 1, 2]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["epoch-00000002.pt", "epoch-00000010.pt", "fit.json", "fit.lock"]


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    files = Checkpoints(tmp_path / "fit", 1, KEY, 0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")

    assert path.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "fit"]
    with pytest.warns(RuntimeWarning, match="was not written .*No space"):
        files.save({"epoch": 1})


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

    torch.save({"epoch": Harm()}, tmp_path / "epoch-00000001.pt")
    with pytest.raises(ValueError, match="cannot be read"):
        Checkpoints(tmp_path, 1, KEY, 0)
    assert not (tmp_path / "harm").exists()
    assert (tmp_path / "epoch-00000001.pt").exists()
