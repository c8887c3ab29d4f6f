"""The isomers of a formula in QM9."""

import dataclasses
import pathlib
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from equistein.data._array_files import DataError, stored_arrays
from equistein.data._cache import (
    cache_folder,
    DATA_VARIABLE,
    load_cached,
    local_file,
    save_cached,
)
from equistein.molecules import atomic_numbers_of, atoms_of

_FIGSHARE = "https://ndownloader.figshare.com/files/"
_ARCHIVE = (
    "3195389",
    "sha256:3a63848ac80691bdb8d41834b575afad345b9300d7a2db0c38adb7f6eaa8360c",
    "dsgdb9nsd.xyz.tar.bz2",
)  # 86 MB
_EXCLUDED = (
    "3195404",
    "sha256:3aa5115d540b356de94791d4a74c3bf1ed91c469ecf52a4f5d7cc0506fe02e24",
    "uncharacterized.txt",
)
_NUM_KEPT, _NUM_TRAIN, _NUM_VALID = 130_831, 100_000, 17_748


@dataclasses.dataclass(frozen=True)
class QM9Isomers:
    """The molecules of one formula in QM9.

    Attributes:
        positions: The positions by B3LYP, in Angstrom, `(molecule, atom, 3)`.
        atomic_numbers: That of each atom, `(atom,)`, the same in all molecules: heavy
            atoms in the order of C, N, O, F, then hydrogens.
        split: `train`, `valid` or `test`: the split of Cormorant, EGNN and the paper.
    """

    positions: np.ndarray
    atomic_numbers: np.ndarray
    split: np.ndarray


def qm9_isomers(formula: str, *, download: bool = False) -> QM9Isomers | None:
    """Return QM9's molecules of a formula, or None where they are not available.

    From `$EQUISTEIN_DATA/qm9/qm9_<formula>.npz`, else from the cache, else downloaded
    from the original archive, whose checksum is compared. The 3 054 molecules that QM9
    calls uncharacterized are left out. With `download`, 86 MB come from figshare.com.

    References:
        Ramakrishnan et al. (2014), Scientific Data 1, 140022.
    """
    try:
        numbers = sorted(atomic_numbers_of(atoms_of(formula)))
    except ValueError as error:
        raise DataError(str(error)) from None
    kept = cache_folder() / f"qm9-{formula}.npz"
    path = local_file(f"qm9/qm9_{formula}.npz")
    names = ["positions", "charges", "split"]
    arrays = stored_arrays(path, names) if path else load_cached(kept)
    if arrays is None:
        if not download:
            return None
        arrays = _from_archive(_fetch(), formula, numbers)
        save_cached(kept, arrays)
    return _checked(arrays, path or kept, formula, numbers)


def _checked(
    arrays: Mapping[str, np.ndarray],
    path: pathlib.Path,
    formula: str,
    numbers: list[int],
) -> QM9Isomers:
    positions, split = arrays["positions"], arrays["split"]
    charges = np.atleast_2d(arrays["charges"])
    shape = positions.shape
    good = (
        shape[1:] == (len(numbers), 3) and len(positions)
        and charges.shape in (shape[:2], (1, shape[1])) and split.shape == shape[:1]
        and positions.dtype.kind == "f" and np.isfinite(positions).all()
        and np.isin(split, ("train", "valid", "test")).all()
        and charges.dtype.kind in "iu" and (charges == charges[:1]).all()
        and sorted(charges[0].tolist()) == numbers
        and (np.diff((charges[0] == 1).astype(int)) >= 0).all()
    )  # fmt: skip
    if not good:
        raise DataError(
            f"{path} must hold `positions` (molecule, atom, 3), finite, `charges` of "
            f"{formula}, hydrogens last and the same for all molecules, and for each "
            "its `split`: train, valid or test."
        )
    return QM9Isomers(positions, charges[0], split)


def _fetch() -> list[pathlib.Path]:
    """Return the archive and the list of what to leave out, checked, in the cache."""
    import pooch

    options = {"path": cache_folder(), "progressbar": True}
    try:
        return [
            pathlib.Path(pooch.retrieve(_FIGSHARE + number, checksum, file, **options))
            for number, checksum, file in (_ARCHIVE, _EXCLUDED)
        ]
    except Exception as error:  # the network has many ways to fail
        raise DataError(
            f"QM9 could not be fetched: {error}. Put qm9_<formula>.npz into the folder "
            f"qm9 of ${DATA_VARIABLE}, or retry."
        ) from None


def _from_archive(
    files: Iterable[pathlib.Path], formula: str, numbers: list[int]
) -> dict[str, np.ndarray]:
    """Return the molecules of a formula in the original archive, as arrays by name."""
    archive, excluded = files
    words = [line.split() for line in excluded.read_text().splitlines()]
    left_out = {int(w[0]) for w in words if len(w) >= 2 and w[0].isdigit()}
    splits, charges = _splits(left_out), np.array(numbers)
    positions, names = [], []
    for index, symbols, points in _frames(archive):
        values = np.array(atomic_numbers_of(symbols))
        if index in left_out or sorted(values) != numbers:
            continue
        positions.append(points[np.lexsort((values, values == 1))])
        names.append(splits.get(index, "test"))
    if not positions:
        raise DataError(f"QM9 holds no molecule of the formula {formula}.")
    charges = charges[np.lexsort((charges, charges == 1))]
    split = np.array(names)
    return {"positions": np.stack(positions), "charges": charges, "split": split}


def _frames(archive: pathlib.Path) -> Iterator[tuple[int, list[str], np.ndarray]]:
    """Yield number, elements and positions of each molecule in the archive."""
    with tarfile.open(archive, "r|bz2") as packed:
        for member in packed:
            number = re.search(r"([0-9]+)\.xyz$", member.name)
            file = packed.extractfile(member) if member.isfile() else None
            if number is None or file is None:
                continue
            lines = file.read().decode().splitlines()
            atoms = [line.split() for line in lines[2 : 2 + int(lines[0])]]
            points = [[float(w.replace("*^", "e")) for w in a[1:4]] for a in atoms]
            yield int(number.group(1)), [a[0] for a in atoms], np.array(points)


def _splits(left_out: set[int]) -> dict[int, str]:
    """Return the part of each index, as Cormorant drew them."""
    kept = [index for index in range(1, 133_886) if index not in left_out]
    if len(kept) != _NUM_KEPT:
        return {}  # another list: nothing is for training
    order = np.random.RandomState(0).permutation(_NUM_KEPT)  # noqa: NPY002
    parts = np.empty(_NUM_KEPT, object)
    parts[order[:_NUM_TRAIN]] = "train"
    parts[order[_NUM_TRAIN : _NUM_TRAIN + _NUM_VALID]] = "valid"
    parts[order[_NUM_TRAIN + _NUM_VALID :]] = "test"
    return dict(zip(kept, parts, strict=True))
