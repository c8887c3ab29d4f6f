"""Images in a folder of files. Files are untrusted."""

import io
import math
import pathlib

import numpy as np
from jaxtyping import Float

from equistein._limits import check_read_size, LimitError
from equistein.data._array_files import DataError

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
_GREY = ("1", "L", "LA")
_COLOR = ("P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB")
_LARGEST = 2**24  # pixels of one image


def read_image_folder(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the images in a folder of files, and their classes if it has subfolders.

    Each subfolder with images is a class, numbered in the order of their names, as are
    the files. If an image has colors, all have three channels. Files that do not end in
    .png, .jpg, .bmp, .gif, .tif or .webp are left out.

    Returns:
        The images, `(n, height, width, channel)`, float32 from 0 to 1, and the class of
        each, or None.
    """
    files, labels = _files(path)
    if len(files) < 2:
        suffixes = ", ".join(_SUFFIXES)
        raise DataError(
            f"The folder {path} must hold at least two images, files that end in "
            f"{suffixes}, by themselves or in a subfolder for each class, but has "
            f"{len(files)}."
        )
    sizes, modes = zip(*(_size_and_mode(file) for file in files), strict=True)
    for file, size in zip(files, sizes, strict=True):
        if size != sizes[0]:
            first, other = ("{} x {}".format(*each) for each in (sizes[0], size))
            raise DataError(
                f"All images must have one size, but {files[0]} has {first} pixels and "
                f"{file} has {other}. Resize or crop them."
            )
    color = any(mode in _COLOR for mode in modes)
    width, height = sizes[0]
    shape = (len(files), height, width, 3 if color else 1)
    try:
        what = f"The images in {path}, {len(files)} of {width} x {height} pixels,"
        check_read_size(what, 4 * math.prod(shape), "take fewer, or smaller ones")
    except LimitError as error:
        raise DataError(str(error)) from None
    images = np.empty(shape, np.float32)
    for row, file in zip(images, files, strict=True):
        row[:] = _pixels(file, "RGB" if color else "L").reshape(row.shape)
    images /= 255
    return images, labels


def image_classes(path: pathlib.Path) -> tuple[str, ...] | None:
    """Return the names of the classes of `read_image_folder`, if there are any."""
    files, labels = _files(path)
    if labels is None:
        return None
    return tuple(dict.fromkeys(file.parent.name for file in files))


def write_image_folder(
    path: pathlib.Path, images: Float[np.ndarray, "image height width channel"]
) -> None:
    """Write images as .png files into an existing folder, numbered from 0 on.

    They have one channel or three, of numbers from 0, black, to 1; others are clipped,
    and NaN is black.
    """
    from PIL import Image

    levels = np.clip(np.nan_to_num(images), 0, 1) * 255
    digits = len(str(len(images) - 1))
    for number, image in enumerate(np.round(levels).astype(np.uint8)):
        pixels = image[..., 0] if image.shape[-1] == 1 else image
        Image.fromarray(pixels).save(path / f"{number:0{digits}}.png")


def _files(path: pathlib.Path) -> tuple[list[pathlib.Path], np.ndarray | None]:
    """Return the images of a folder, and the class of each if it has subfolders."""
    if not path.is_dir():
        raise DataError(f"There is no folder {path}.")
    here = _images(path)
    folders = sorted(each for each in path.iterdir() if each.is_dir())
    parts = [images for images in map(_images, folders) if images]
    if not parts:
        return here, None
    if here:
        raise DataError(
            f"The folder {path} holds images, such as {here[0].name}, beside "
            f"subfolders of images, such as {parts[0][0].parent.name}: put all images "
            "into it, or each into the subfolder of its class."
        )
    files = [file for part in parts for file in part]
    if len(parts) == 1:
        return files, None  # one class has no information
    return files, np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _images(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")
    )


def _size_and_mode(file: pathlib.Path) -> tuple[tuple[int, int], str]:
    """Return width, height and the kind of pixels, without reading these."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            size, mode = image.size, image.mode
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(_damage_error(file, error)) from None
    if size[0] * size[1] > _LARGEST:
        raise DataError(
            f"{file} states {size[0]} x {size[1]} pixels; at most {_LARGEST} are read."
        )
    if mode not in (*_GREY, *_COLOR):
        raise DataError(
            f"{file} has pixels of the kind {mode!r}: save it with 8 bits a channel."
        )
    return size, mode


def _pixels(file: pathlib.Path, mode: str) -> np.ndarray:
    from PIL import Image

    try:
        check_read_size(str(file), file.stat().st_size)
        # From memory: for a file, Pillow allocates as many bytes as it states.
        with Image.open(io.BytesIO(file.read_bytes())) as image:
            return np.asarray(image.convert(mode))
    except LimitError as error:
        raise DataError(str(error)) from None
    except Exception as error:
        raise DataError(_damage_error(file, error)) from None


def _damage_error(file: pathlib.Path, error: Exception) -> str:
    return f"{file} is damaged or no image: {error}. Delete it, or copy it again."
