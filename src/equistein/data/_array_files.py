"""Read points from a user's files of arrays or images. Files are untrusted."""

import io
import math
import pathlib
import re
import struct
import zipfile
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from equistein._limits import check_read_size, LimitError
from equistein.molecules import has_rdkit, Molecule, order_by_bonds

_LARGEST = 1e15  # squares of larger numbers overflow in single precision
_LEAST = 4  # bytes that a number becomes, in single precision
_LOST, _NOISE = 0.01, 1e-14  # of the width that rounding may take; of double precision
_ROWS = 1_000  # of which this is looked at
_REMEDY = "give fewer points, or floating point by np.save and --stream"
_SUFFIXES = ".png .jpg .jpeg .bmp .gif .tif .tiff .webp .pgm .ppm".split()
_GREY = ("1", "L", "LA")
_COLOR = ("P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB")
_NO_CLASSES = """train training test testing val valid validation dev extra holdout
    images masks labels annotations""".split()
_PIXELS = 2**24  # of one image, at most
_USED = """x y q Q labels R coords coordinates positions pos xyz z Z numbers symbols
    nuclear_charges atomic_numbers charge charges species elements atoms""".split()


class DataError(ValueError):
    """A file does not hold what was expected."""


def read_points(path: pathlib.Path) -> np.ndarray:
    """Return the points in an .npy file, or array `x` of an .npz file, as float32."""
    if not path.is_file() or path.suffix.lower() not in (".npy", ".npz"):
        raise DataError(f"There is no file {path} that ends in .npy or .npz.")
    values = stored_arrays(path, ["x"])["x"]
    has_rows = values.dtype.kind in "iuf" and values.ndim > 1 and len(values) > 1
    if not has_rows or 0 in values.shape:
        raise DataError(
            f"{path} must hold at least two points of real numbers, stacked on axis 0, "
            f"but has shape {values.shape} and type {values.dtype}."
        )
    check_rounding(str(path), values)
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    bad = np.array([not np.max(np.abs(row)) <= _LARGEST for row in values])
    if bad.any():
        raise DataError(
            f"{path} must hold finite numbers of at most 1e15, but {bad.sum()} of "
            f"{len(values)} points are not, the first at index {bad.argmax()}."
        )
    return values


def check_rounding(what: str, values: np.ndarray) -> None:
    """Raise if single precision rounds off much of how numbers differ, by rows."""
    some = values[:_ROWS].astype(np.float64).reshape(len(values[:_ROWS]), -1)
    with np.errstate(all="ignore"):
        lost, width = (some - some.astype(np.float32)).std(axis=0), some.std(axis=0)
    bad = (lost > _LOST * width) & (width > _NOISE * np.abs(some).max(axis=0))
    if bad.any():
        raise DataError(
            f"{what} has numbers such as {some[0, bad.argmax()]:.12g}, whose "
            "differences single precision rounds off: subtract a constant, or omit it."
        )


def map_points(path: pathlib.Path | str) -> np.memmap:
    """Return the points in an .npy file, or the array `x` of an .npz file, on disk.

    It is read on demand, for `es.training.OnDisk(points, epoch_batches=...)`.
    """
    try:
        points = _map_file(pathlib.Path(path))
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(f"{path} cannot be read on demand: {error}.") from None
    if points.ndim < 2 or len(points) < 2 or points.dtype.kind != "f":
        raise DataError(
            f"{path} must hold two points or more in floating point on axis 0, to be "
            f"read on demand, but has shape {points.shape} and type {points.dtype}."
        )
    return points


def _map_file(path: pathlib.Path) -> np.memmap:
    start = 0
    with path.open("rb") as file:
        if path.suffix.lower() == ".npz":
            part = zipfile.ZipFile(path).getinfo("x.npy")
            if part.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed; save it with np.savez")
            file.seek(part.header_offset)
            header = file.read(30)  # the lengths of two fields end it
            start = part.header_offset + 30 + sum(struct.unpack("<HH", header[26:]))
        file.seek(start)
        shape, is_fortran, dtype = _array_header(file)
        order = "F" if is_fortran else "C"
        return np.memmap(path, dtype, "r", file.tell(), shape, order)


def read_labels(path: pathlib.Path, num: int) -> np.ndarray | None:
    """Return the classes in the array `y`, or `labels`, of an .npz file, or None."""
    if path.suffix.lower() != ".npz":
        return None
    found = stored_arrays(path, [], ["y", "labels"])
    if not found:
        return None
    labels = found["y"] if "y" in found else found["labels"]
    fits = labels.shape == (num,) and labels.dtype.kind in "iubf"
    if not fits or (labels != np.round(labels)).any() or abs(labels).max() >= 2**31 - 1:
        raise DataError(
            f"The array `y` of {path} must hold one class for each of its {num} "
            "points, whole numbers such as np.unique(y, return_inverse=True)[1], or -1 "
            f"where unknown, but has shape {labels.shape} and type {labels.dtype}."
        )
    return labels.astype(np.int64)


def stored_arrays(
    path: pathlib.Path, needed: Sequence[str], others: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Return needed and other arrays of a file by name; that in an .npy file is `x`."""
    names = [*needed, *others]
    try:
        check_read_size(str(path), _memory(path, names), _REMEDY)
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            stored = {"x": stored} if isinstance(stored, np.ndarray) else stored
            held = list(stored)
            arrays = {name: np.asarray(stored[name]) for name in names if name in held}
    except LimitError as error:
        raise DataError(str(error)) from None
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(
            f"{path} is damaged or no NumPy file of numbers: {error}; copy it again."
        ) from None
    for name in needed:
        if name not in arrays:
            raise DataError(
                f"{path} must hold an array `{name}`, but has "
                f"{', '.join(held) or 'nothing'}. Points are `x`; of molecules, "
                "positions are `R`, atomic numbers `z`, forces `F`, energies `E`."
            )
    return arrays


def _memory(path: pathlib.Path, names: Collection[str]) -> int:
    """Return the bytes that arrays become by their headers, or by what is stored."""

    def needed_by(part: Any, stored: int) -> int:
        shape, _, dtype = _array_header(part)
        return max(stored, math.prod(shape) * max(_LEAST, dtype.itemsize))

    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            return needed_by(file, path.stat().st_size)
    needed = 0
    with zipfile.ZipFile(path) as archive:
        for name in {f"{name}.npy" for name in names} & set(archive.namelist()):
            about = archive.getinfo(name)
            with archive.open(name) as part:
                needed += needed_by(part, max(about.file_size, about.compress_size))
    return needed


def _array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return the shape, whether the order is Fortran's, and the type of an array."""
    if np.lib.format.read_magic(file) != (1, 0):  # whose headers may be of any length
        raise ValueError("it is no array of plain numbers")
    return np.lib.format.read_array_header_1_0(file)


def unused_arrays(path: pathlib.Path, notes: Sequence[str]) -> tuple[str, ...]:
    """Return notes, with another of arrays in an .npz file that no note names."""
    held = np.load(path).files if path.suffix.lower() == ".npz" else []
    used = {*_USED, *re.findall(r"\w+", " ".join(notes))}
    unused = ", ".join(name for name in held if name not in used)
    return (*notes, *[f"Arrays that are not used: {unused}."] * bool(unused))


def as_particles(points: np.ndarray, dim: int) -> np.ndarray:
    """Reshape rows `x1 y1 x2 y2 ...` to particles, `(n, particle, dim)`."""
    if points.ndim == 3 and points.shape[2] == dim:
        return points
    if dim < 1 or points.ndim == 3 or points[0].size % dim:
        raise DataError(
            f"Points of {points.shape[1:]} do not divide into dimension {dim}."
        )
    return points.reshape(len(points), -1, dim)


def stack_molecules(
    molecules: Sequence[Molecule],
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, energies and forces of molecules, NaN where unknown.

    They must have the elements `symbols`, whose order each molecule's atoms are put
    into: those of one element are alike, but for `bonds`, where RDKit finds these.
    """
    places = np.argsort(np.argsort(symbols, kind="stable"))
    orders = [np.argsort(each.symbols, kind="stable")[places] for each in molecules]
    if bonds and has_rdkit():
        found = (order_by_bonds(each, symbols, bonds) for each in molecules)
        orders = [new or old for new, old in zip(found, orders, strict=True)]
    pairs = list(zip(molecules, orders, strict=True))
    unknown = np.full((len(symbols), 3), np.nan)
    forces = [unknown if m.forces is None else m.forces[order] for m, order in pairs]
    energies = [np.nan if m.energy is None else m.energy for m in molecules]
    positions = np.array([m.positions[order] for m, order in pairs])
    return positions, np.array(energies), np.array(forces)


def read_image_folder(
    path: pathlib.Path,
) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...] | None]:
    """Return the images in a folder of files, their classes, and the names of these.

    Each subfolder with images is a class, numbered in the order of their names, as are
    the files. If an image has colors, all have three channels. Files that do not end in
    .png, .jpg, .bmp, .gif, .tif or .webp are left out. Images have the shape `(n,
    height, width, channel)`, as float32 from 0 to 1; classes `(n,)`. Without subfolders
    there are no classes: None, and no names.
    """
    files, labels = _files(path)
    if len(files) < 2:
        raise DataError(
            f"The folder {path} must hold at least two images, or subfolders of some "
            f"for each class, but has {len(files)} files {', '.join(_SUFFIXES)}."
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
    shape = (len(files), *sizes[0][::-1], 3 if color else 1)
    what = f"The images in {path}, {len(files)} of {sizes[0]} pixels,"
    check_read_size(what, 4 * math.prod(shape), "take fewer, or smaller ones")
    images = np.empty(shape, np.float32)
    for row, file in zip(images, files, strict=True):
        row[:] = _pixels(file, "RGB" if color else "L").reshape(row.shape)
    images /= 255
    names = tuple(dict.fromkeys(file.parent.name for file in files))
    return images, labels, None if labels is None else names


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
    deep = [f for f in path.glob("[!.]*/[!.]*/**/*") if f.suffix.lower() in _SUFFIXES]
    if deep:
        raise DataError(f"{deep[0]} is too deep: put a class's images into one folder.")
    folders = sorted(path.glob("[!.]*/"))
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
    if {part[0].parent.name.lower() for part in parts} <= {*_NO_CLASSES}:
        raise DataError(f"{path} has folders of a split or masks: give one of them.")
    return files, np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _images(folder: pathlib.Path) -> list[pathlib.Path]:
    files = (file for file in folder.iterdir() if not file.name.startswith("."))
    return sorted(file for file in files if file.suffix.lower() in _SUFFIXES)


def _size_and_mode(file: pathlib.Path) -> tuple[tuple[int, int], str]:
    """Return width, height and the kind of pixels, without reading these."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            size, mode, turn = image.size, image.mode, image.getexif().get(274, 1)
            num = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(_damage_error(file, error)) from None
    if size[0] * size[1] > _PIXELS:
        raise DataError(f"{file} states {size} pixels; at most {_PIXELS} are read.")
    if (num, turn) != (1, 1):
        raise DataError(f"{file} has frames, or EXIF turns it: save each upright.")
    if mode not in (*_GREY, *_COLOR):
        raise DataError(f"{file} has {mode!r} pixels: save it with 8 bits a channel.")
    return size, mode


def _pixels(file: pathlib.Path, mode: str) -> np.ndarray:
    from PIL import Image

    try:
        check_read_size(str(file), file.stat().st_size)
        # From memory: for a file, Pillow allocates as many bytes as it states.
        with Image.open(io.BytesIO(file.read_bytes())) as image:
            if image.mode in ("LA", "PA", "RGBA"):  # what is transparent is white
                paper = Image.new("RGBA", image.size, "white")
                image = Image.alpha_composite(paper, image.convert("RGBA"))
            return np.asarray(image.convert(mode))
    except LimitError as error:
        raise DataError(str(error)) from None
    except Exception as error:
        raise DataError(_damage_error(file, error)) from None


def _damage_error(file: pathlib.Path, error: Exception) -> str:
    return f"{file} is damaged or no image: {error}. Delete it, or copy it again."
