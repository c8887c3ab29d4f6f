"""Labeled images: FashionMNIST, MNIST, and scikit-learn's digits."""

import dataclasses
import hashlib
import pathlib
from typing import Literal

import numpy as np

from equistein.data._array_files import DataError
from equistein.data._cache import cache_folder, DATA_VARIABLE, fetched, local_file
from equistein.data._idx import read_idx

Split = Literal["train", "test"]


@dataclasses.dataclass(frozen=True)
class LabeledImages:
    """Images with their classes.

    Attributes:
        pixels: The images, `(n, side, side, 1)`, float32 from 0 (background) to 1.
        labels: The class of each, from 0 on.
        names: What the classes are called.
    """

    pixels: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Source:
    """Where a data set is, and what it must be.

    Attributes:
        url: The address that the files' names follow.
        names: What the classes are called.
        files: For each part the paths of images and labels in `$EQUISTEIN_DATA`, with
            their SHA-256.
    """

    url: str
    names: tuple[str, ...]
    files: dict[Split, dict[str, str]]


_DIGITS = tuple("0123456789")
_COUNTS = {"train": 60_000, "test": 10_000}
_SOURCES = {
    "fashion-mnist": _Source(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/"
        "fashion/",
        (
            "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt",
            "sneaker", "bag", "ankle boot",
        ),
        {
            "train": {
                "fashion_mnist/train-images-idx3-ubyte.gz":
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "fashion_mnist/train-labels-idx1-ubyte.gz":
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            },
            "test": {
                "fashion_mnist/t10k-images-idx3-ubyte.gz":
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "fashion_mnist/t10k-labels-idx1-ubyte.gz":
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            },
        },
    ),
    "mnist": _Source(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        _DIGITS,
        {
            "train": {
                "mnist/train-images-idx3-ubyte.gz":
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "mnist/train-labels-idx1-ubyte.gz":
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            },
            "test": {
                "mnist_test/t10k-images-idx3-ubyte.gz":
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "mnist_test/t10k-labels-idx1-ubyte.gz":
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            },
        },
    ),
}  # fmt: skip


def labeled_images(
    name: Literal["digits", "fashion-mnist", "mnist"],
    split: Split,
    *,
    download: bool = False,
) -> LabeledImages | None:
    """Return a part of a data set of images, or None where it is not available.

    The digits come with scikit-learn: 1 797 images of 8 x 8 pixels, of which a
    fifth is for testing. The others, 60 000 and 10 000 images of 28 x 28 pixels, are
    looked for in `$EQUISTEIN_DATA` (folders `fashion_mnist`, and `mnist` for training
    or `mnist_test`), then in the cache, and last, if that is allowed, at their
    publishers'. Every file's checksum is compared.

    Args:
        name: `digits`, `fashion-mnist` or `mnist`.
        split: `train` or `test`.
        download: Whether up to 31 MB may be fetched.

    Raises:
        DataError: If a file is damaged, does not match its checksum or cannot be
            fetched, or scikit-learn is not installed.

    References:
        Xiao, Rasul and Vollgraf (2017), Fashion-MNIST; LeCun, Bottou, Bengio and
        Haffner (1998); Alpaydin and Kaynak (1998), optical recognition of handwritten
        digits.
    """
    if split not in ("train", "test"):
        raise DataError(f"`split` must be 'train' or 'test', but got {split!r}.")
    if name == "digits":
        return _digits(split)
    if name not in _SOURCES:
        known = ", ".join(["digits", *_SOURCES])
        raise DataError(f"There are no images {name!r}: give one of {known}.")
    source = _SOURCES[name]
    arrays = []
    for file, checksum in source.files[split].items():
        path = _find(name, source.url, file, checksum, download)
        if path is None:
            return None
        arrays.append(read_idx(path))
    images, labels = arrays
    return as_labeled(images, labels, source.names, (_COUNTS[split], 28, 28))


def class_names(name: Literal["digits", "fashion-mnist", "mnist"]) -> tuple[str, ...]:
    """Return what the classes of a data set are called."""
    return _DIGITS if name == "digits" else _SOURCES[name].names


def as_labeled(
    images: np.ndarray,
    labels: np.ndarray,
    names: tuple[str, ...],
    shape: tuple[int, int, int],
) -> LabeledImages:
    """Return bytes as images with pixels from 0 to 1.

    Args:
        images: The pixels, from 0 to 255.
        labels: The classes.
        names: What they are called.
        shape: The number of images and their sides.

    Raises:
        DataError: If there is another number of either, images have another size, or a
            label is no class.
    """
    if images.dtype != np.uint8 or labels.dtype.kind not in "iu":
        raise DataError(
            "Expected pixels as bytes (uint8) and labels as whole numbers, but got "
            f"{images.dtype} and {labels.dtype}."
        )
    if images.shape != shape or labels.shape != shape[:1]:
        raise DataError(
            f"Expected {shape[0]} images of {shape[1]} x {shape[2]} pixels and a label "
            f"for each, but got arrays of shape {images.shape} and {labels.shape}."
        )
    wrong = (labels < 0) | (labels >= len(names))
    if wrong.any():
        index = int(wrong.argmax())
        raise DataError(
            f"Labels must be from 0 to {len(names) - 1}, but the one at index {index} "
            f"is {labels[index]}."
        )
    pixels = images[..., None].astype(np.float32) / 255
    return LabeledImages(pixels, labels.astype(np.int32), names)


def _find(
    name: str, url: str, file: str, checksum: str, download: bool
) -> pathlib.Path | None:
    """Return where a file is, checked; None if it is nowhere."""
    folder, _, last = file.partition("/")
    kept = cache_folder() / f"{name}-{last}"
    path = local_file(file) or kept
    if path.is_file():
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != checksum:
            raise DataError(
                f"{path} does not match its checksum: its SHA-256 is {found}, not "
                f"{checksum}. Delete it, or copy it again."
            )
        return path
    if not download:
        return None
    remedy = f"Put {last} into the folder {folder} of ${DATA_VARIABLE}, or try again."
    return fetched(name, url + last, f"sha256:{checksum}", kept.name, remedy)


def _digits(split: Split) -> LabeledImages:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            "The digits come with scikit-learn, which is not installed: "
            "pip install 'equistein[images]'."
        ) from None
    pixels, labels = map(np.asarray, load_digits(return_X_y=True))
    # The order of these never changes, and the images follow a pattern of their own.
    order = np.random.RandomState(0).permutation(len(labels))  # noqa: NPY002
    num_test = len(labels) // 5
    chosen = order[:num_test] if split == "test" else order[num_test:]
    images = (pixels[chosen].reshape(-1, 8, 8, 1) / 16).astype(np.float32)
    return LabeledImages(images, labels[chosen].astype(np.int32), _DIGITS)
