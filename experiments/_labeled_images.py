"""Labeled images: FashionMNIST, MNIST (in IDX files), and scikit-learn's digits."""

import dataclasses
import gzip
import hashlib
import os
import pathlib
from typing import Literal

import numpy as np

from equistein.data import cache_folder, DATA_VARIABLE, DataError

Split = Literal["train", "test"]


@dataclasses.dataclass(frozen=True)
class LabeledImages:
    """Images with their classes.

    Attributes:
        pixels: The images, `(n, side, side, 1)`, float32 from 0 (background) to 1.
        labels: The class of each, from 0 on.
        names: The names of the classes.
    """

    pixels: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Source:
    """A published data set."""

    url: str  # which the files' names follow
    names: tuple[str, ...]
    files: dict[Split, dict[str, str]]  # images and labels in the data, with SHA-256


_DIGITS = tuple("0123456789")
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

    The digits come with scikit-learn: 1 797 images of 8 x 8 pixels, a fifth of them for
    testing. The others, of 28 x 28 pixels, are read from `$EQUISTEIN_DATA` (folders
    `fashion_mnist`, 60 000 and 10 000 of them, and `mnist_test`, 10 000), else from the
    cache, else downloaded (31 MB) if `download`. All checksums are compared.

    Raises:
        DataError: If a file is damaged, does not match its checksum or cannot be
            fetched, or scikit-learn is not installed.

    References:
        Xiao, Rasul and Vollgraf (2017), Fashion-MNIST; LeCun, Bottou, Bengio and
        Haffner (1998); Alpaydin and Kaynak (1998), optical recognition of handwritten
        digits.
    """
    if name == "digits":
        return _digits(split)
    source = _SOURCES[name]
    arrays = []
    for file, checksum in source.files[split].items():
        path = _find(name, source.url, file, checksum, download)
        if path is None:
            return None
        arrays.append(_read_idx(path))
    images, labels = arrays
    pixels = images[..., None].astype(np.float32) / 255
    return LabeledImages(pixels, labels.astype(np.int32), source.names)


def _find(
    name: str, url: str, file: str, checksum: str, download: bool
) -> pathlib.Path | None:
    """Return a file whose checksum is right; None if it is missing."""
    import pooch

    folder, _, last = file.partition("/")
    kept = cache_folder() / f"{name}-{last}"
    local = pathlib.Path(os.environ.get(DATA_VARIABLE, "")).expanduser() / file
    path = local if local.is_file() and os.environ.get(DATA_VARIABLE) else kept
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
    try:
        found = pooch.retrieve(
            url + last, f"sha256:{checksum}", kept.name, kept.parent, progressbar=True
        )
    except Exception as error:  # the network has many ways to fail
        raise DataError(
            f"{name} could not be fetched: {error}. Put {last} into the folder "
            f"{folder} of ${DATA_VARIABLE}, or try again."
        ) from None
    return pathlib.Path(found)


def _digits(split: Split) -> LabeledImages:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            "The digits come with scikit-learn, which is not installed: "
            "pip install 'equistein[images]'."
        ) from None
    pixels, labels = map(np.asarray, load_digits(return_X_y=True))
    # The order of these never changes, and neighboring images are related.
    order = np.random.RandomState(0).permutation(len(labels))  # noqa: NPY002
    num_test = len(labels) // 5
    chosen = order[:num_test] if split == "test" else order[num_test:]
    images = (pixels[chosen].reshape(-1, 8, 8, 1) / 16).astype(np.float32)
    return LabeledImages(images, labels[chosen].astype(np.int32), _DIGITS)


def _read_idx(path: pathlib.Path) -> np.ndarray:
    """Return the bytes in a gzipped IDX file, whose checksum is right.

    The format is two zero bytes, the type (8 for unsigned bytes), the number of axes,
    each axis's length as a big-endian 32-bit integer, and the values.
    """
    content = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(content, ">u4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + shape.nbytes).reshape(shape)
