import numpy as np
import pytest
from PIL import Image

from equistein.data import (
    DataError,
    read_image_folder,
    write_image_folder,
)

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
COLOR = np.stack([GREY, GREY + 5, GREY + 9], axis=2)


def save(path, array=GREY):
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.fromarray(array).save(path)


def test_a_folder_of_grey_images_is_read_in_the_order_of_names(tmp_path):
    save(tmp_path / "b.png", GREY + 1)
    save(tmp_path / "a.PNG")
    (tmp_path / "notes.txt").write_text("no image")
    images, labels, _ = read_image_folder(tmp_path)
    assert labels is None
    assert images.dtype == np.float32
    assert np.allclose(images[..., 0] * 255, [GREY, GREY + 1])


def test_subfolders_are_classes_and_one_color_makes_all_colored(tmp_path):
    save(tmp_path / "dogs" / "1.png", COLOR)
    save(tmp_path / "cats" / "1.bmp")
    save(tmp_path / "cats" / "2.gif")
    (tmp_path / "empty").mkdir()
    images, labels, names = read_image_folder(tmp_path)
    assert labels.tolist() == [0, 0, 1]
    assert names == ("cats", "dogs")
    assert np.allclose(images[2] * 255, COLOR)
    assert np.allclose(images[0] * 255, GREY[..., None])


def test_a_single_subfolder_is_no_class(tmp_path):
    for name in ("1.png", "2.png"):
        save(tmp_path / "all" / name)
    assert read_image_folder(tmp_path)[1:] == (None, None)


@pytest.mark.parametrize("array", [GREY[..., None], COLOR])
def test_images_that_are_written_are_read_again(array, tmp_path):
    images = np.stack([array + number for number in range(11)]) / 255
    images[0, 0, 0], images[1, 0, 0], images[2, 0, 0] = -0.5, 1.5, np.nan
    write_image_folder(tmp_path, images)
    assert sorted(path.name for path in tmp_path.iterdir())[10] == "10.png"
    again, labels, _ = read_image_folder(tmp_path)
    assert labels is None
    assert np.allclose(again, np.nan_to_num(np.clip(images, 0, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: save(path / "1.png"), "at least two images.*has 1"),
        (lambda path: (path / "1.png").write_bytes(b"\x89PNG nothing"), "two images"),
        (
            lambda path: [save(path / "1.png"), save(path / "dogs" / "2.png")],
            "1.png, beside subfolders of images, such as dogs",
        ),
        (
            lambda path: [save(path / "1.png"), (path / "2.png").write_bytes(b"no")],
            "2.png is damaged or no image",
        ),
        (
            lambda path: [save(path / f"{n}.tif", np.ones((2, 2), "f4")) for n in "12"],
            "1.tif has 'F' pixels",
        ),
        (
            lambda path: [save(path / "1.png"), save(path / "2.png", GREY.T)],
            r"1\.png has 4 x 3 .*2\.png has 3 x 4",
        ),
        (lambda path: path.rmdir(), "no folder"),
        (
            lambda path: [save(path / "a" / f"{n}.png") for n in ("1", "b/2")],
            "2.png is too deep",
        ),
    ],
)
def test_a_folder_that_does_not_do_is_refused(make, words, tmp_path):
    make(tmp_path)
    with pytest.raises(DataError, match=words):
        read_image_folder(tmp_path)


def test_what_is_transparent_is_white_whatever_its_color(tmp_path):
    pixels = np.zeros((3, 4, 4), np.uint8)
    pixels[0, 0, 3] = 255
    for name in ("1.png", "2.png"):
        save(tmp_path / name, pixels)
    images = read_image_folder(tmp_path)[0]
    assert images[0, 0, 0].tolist() == [0, 0, 0]
    assert np.all(images[:, 1:] == 1)


def test_folders_that_are_hidden_are_left_out_and_splits_are_no_classes(tmp_path):
    for folder in ("", ".ipynb_checkpoints"):
        for name in ("1.png", "2.png"):
            save(tmp_path / "one" / folder / name)
    assert read_image_folder(tmp_path / "one")[1] is None
    for name in ("Train", "test"):
        save(tmp_path / "two" / name / "1.png")
    with pytest.raises(DataError, match="split or masks: give one"):
        read_image_folder(tmp_path / "two")
    save(tmp_path / "two" / "trains" / "1.png")
    assert read_image_folder(tmp_path / "two")[2] == ("Train", "test", "trains")


@pytest.mark.parametrize("kind", ["frames", "turned"])
def test_images_of_many_frames_or_turned_by_exif_are_refused(kind, tmp_path):
    upright, image = Image.fromarray(COLOR), Image.fromarray(COLOR)
    for turn in (1, 6):
        image.getexif()[274] = turn
        image.save(tmp_path / "1.jpg", exif=image.getexif())
        upright.save(tmp_path / "2.jpg")
        if turn == 1:
            assert len(read_image_folder(tmp_path)[0]) == 2
    if kind == "frames":
        upright.save(tmp_path / "1.jpg")
        other = [Image.fromarray(COLOR + 50)]
        upright.save(tmp_path / "0.gif", save_all=True, append_images=other)
    with pytest.raises(DataError, match="has frames, or EXIF turns it"):
        read_image_folder(tmp_path)
