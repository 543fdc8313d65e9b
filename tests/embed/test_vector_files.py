import stat
from pathlib import Path

import numpy as np
import pytest

from pegboard.core.search.relevance import QuantizedVectors, quantize
from pegboard.embed.disk_storage import MANY_FILES, VectorFiles


def key(number: int) -> bytes:
    return number.to_bytes(16)


def vectors(*numbers: int) -> QuantizedVectors:
    rows = np.random.default_rng(numbers).standard_normal((len(numbers), 4)).astype(np.float32)
    return quantize(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def files(folder: Path | None) -> VectorFiles:
    return VectorFiles(folder, "model/1", 4)


def test_bytes_are_close_to_the_vector_they_stand_for() -> None:
    rows = np.random.default_rng(1).standard_normal((50, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    saved = quantize(rows)
    again = saved.rows * saved.scales[:, None]
    np.testing.assert_allclose(again @ rows.T, rows @ rows.T, atol=2e-3)


@pytest.mark.parametrize("on_disk", [True, False])
def test_what_was_added_is_found_and_the_rest_is_not(tmp_path: Path, on_disk: bool) -> None:
    saved = files(tmp_path if on_disk else None)
    saved.add([key(1), key(2)], vectors(1, 2))
    found = saved.get([key(2), key(9), key(1)])
    np.testing.assert_array_equal(found.rows[[2, 0]], vectors(1, 2).rows)
    assert found.scales[1] == 0


def test_another_process_finds_what_this_one_wrote(tmp_path: Path) -> None:
    mine, theirs = files(tmp_path), files(tmp_path)
    assert theirs.get([key(1)]).scales[0] == 0
    mine.add([key(1)], vectors(1))
    np.testing.assert_array_equal(theirs.get([key(1)]).rows, vectors(1).rows)


def test_models_do_not_share_vectors(tmp_path: Path) -> None:
    files(tmp_path).add([key(1)], vectors(1))
    assert VectorFiles(tmp_path, "model/2", 4).get([key(1)]).scales[0] == 0


def test_many_small_files_become_one(tmp_path: Path) -> None:
    saved = files(tmp_path)
    for number in range(MANY_FILES + 1):
        saved.add([key(number)], vectors(number))
    assert len(list(tmp_path.rglob("*.npy"))) == 1
    assert (files(tmp_path).get([key(n) for n in range(MANY_FILES + 1)]).scales > 0).all()


@pytest.mark.parametrize("content", [b"", b"not numpy", b"\x93NUMPY\x01\x00garbage"])
def test_a_broken_file_is_passed_over(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    files(tmp_path).add([key(1)], vectors(1))
    next(tmp_path.rglob("*.npy")).with_name("broken.npy").write_bytes(content)
    assert files(tmp_path).get([key(1)]).scales[0] > 0
    assert "cannot be read" in caplog.text


def test_a_file_that_another_process_has_just_merged_is_no_reason_to_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files(tmp_path).add([key(1)], vectors(1))
    gone = next(tmp_path.rglob("*.npy")).with_name("gone.npy")
    gone.symlink_to(tmp_path / "nowhere")  # in the list of files, but not there when it is read
    assert files(tmp_path).get([key(1)]).scales[0] > 0
    assert caplog.text == ""


def test_a_half_written_file_is_passed_over(tmp_path: Path) -> None:
    files(tmp_path).add([key(1), key(2)], vectors(1, 2))
    path = next(tmp_path.rglob("*.npy"))
    path.write_bytes(path.read_bytes()[:-10])
    assert files(tmp_path).get([key(1)]).scales[0] == 0


def test_an_unwritable_folder_only_prevents_saving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    saved = files(tmp_path / "taken")
    saved.add([key(1)], vectors(1))
    assert saved.get([key(1)]).scales[0] > 0
    assert "cannot be saved" in caplog.text


def test_no_unfinished_files_are_left(tmp_path: Path) -> None:
    files(tmp_path).add([key(1)], vectors(1))
    assert [path.suffix for path in tmp_path.rglob("*") if stat.S_ISREG(path.stat().st_mode)] == [
        ".npy"
    ]
