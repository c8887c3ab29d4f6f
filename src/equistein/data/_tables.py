"""Tables with named columns: CSV and Parquet, in and out."""

import csv
import dataclasses
import io
import itertools
import pathlib
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein._limits import check_read_size, LimitError
from equistein.data._array_files import check_rounding, DataError

TABLES = (".csv", ".tsv", ".parquet")
_GROWTH = 6  # bytes of memory for a letter of text
_REMEDY = "leave rows out, or write them by np.save"
_SEPARATORS = ";\t|, "
_INDEX = ("", "Unnamed: 0", "index", "level_0", "rownames")  # of pandas and R
_ROWS = 20  # that show what separates the columns


@dataclasses.dataclass(frozen=True)
class Table:
    """Points, with the names of their coordinates and classes.

    Attributes:
        points: The numbers, `(row, column)`, as float32.
        columns: The name of each column, with its unit where the file has one.
        labels: The class of each row, -1 where unknown, or None.
        classes: The name of each class, or None.
        class_column: The column that holds the classes, or None.
        notes: What was found in the file and what is left out.
    """

    points: np.ndarray
    columns: tuple[str, ...]
    labels: np.ndarray | None = None
    classes: tuple[str, ...] | None = None
    class_column: str | None = None
    notes: tuple[str, ...] = ()


def is_table(path: pathlib.Path | str) -> bool:
    """Return whether a file is a table, by its name."""
    return pathlib.Path(path).suffix.lower() in TABLES


def read_table(
    path: pathlib.Path | str,
    columns: Sequence[str] | None = None,
    class_column: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
) -> Table:
    """Return the numbers of a CSV or Parquet file, with the names of its columns.

    Lines that begin with # are comments, but the first may name the columns, as
    np.savetxt writes them. Without names they are called 1, 2 and so on. A column of
    row numbers or names, as written by pandas and R, is left out unless it is one of
    the `columns`.

    Args:
        path: A file that ends in .csv, .tsv or .parquet. It is read with pandas.
        columns: Those to read, in this order; by default all but that of the classes.
        class_column: The column of the classes, numbers or words, which are numbered
            in their order; it may be empty in some rows.
        sep: What separates columns: `,`, `;`, a tab, `|` or spaces. By default that
            which all of the first lines have.
        decimal: The decimal point, `.` or `,`; by default as the numbers look.
    """
    path = pathlib.Path(path)
    frame = _frame(path, sep, decimal)
    wanted = [*(columns or ()), *([] if class_column is None else [class_column])]
    notes: list[str] = []
    for name in itertools.takewhile(lambda name: name in _INDEX, frame.columns):
        column, is_unique = frame[name], frame[name].is_unique
        if name in wanted or column.dtype.kind in "fb" or (name and not is_unique):
            break
        if not (is_unique or columns):
            raise DataError(
                f"{path}: the first column has no name, but repeats numbers: choose "
                'by --columns or, if commas are decimal, give --sep ";" --decimal ,'
            )
        frame = frame.drop(columns=name)
        notes.append(f"The first column, {name!r}, numbers or names rows: left out.")
    known = ", ".join(map(repr, frame.columns))
    for name in wanted:
        if name not in frame.columns:
            raise DataError(f"{path} has no column {name!r}, but {known}.")
    chosen = [str(name) for name in columns or frame.columns if name != class_column]
    if not chosen or len(frame) < 2:
        raise DataError(
            f"{path} must hold at least two rows and a column of numbers, but has "
            f"{len(frame)} rows and the columns {known or 'none'}."
        )
    points = np.stack([_numbers(path, name, frame[name]) for name in chosen], axis=1)
    labels, classes = _classes(path, class_column, frame)
    return Table(points, tuple(chosen), labels, classes, class_column, tuple(notes))


def write_table(path: pathlib.Path | str, table: Table) -> None:
    """Write a table, classes by name, into a .csv, .tsv or .parquet file.

    A file that exists is replaced.
    """
    path = pathlib.Path(path)
    frame = _pandas().DataFrame(table.points, columns=list(table.columns))
    if table.labels is not None:
        names = np.array([*(table.classes or ()), ""], object)
        words = names[table.labels] if table.classes else table.labels
        frame[table.class_column or "class"] = words
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        sep = "\t" if path.suffix.lower() == ".tsv" else ","
        frame.to_csv(path, index=False, sep=sep)


def _frame(path: pathlib.Path, sep: str | None, decimal: str | None) -> Any:
    if not path.is_file() or not is_table(path):
        raise DataError(f"There is no file {path} that ends in {' or '.join(TABLES)}.")
    pandas = _pandas()
    try:
        if path.suffix.lower() != ".parquet":
            return _text_frame(pandas, path, sep, decimal)
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:  # whose metadata tell what it becomes
            about = file.metadata
        groups = map(about.row_group, range(about.num_row_groups))
        needed = max(
            path.stat().st_size,
            8 * about.num_rows * about.num_columns,
            sum(group.total_byte_size for group in groups),
        )
        check_read_size(str(path), needed, _REMEDY)
        return pandas.read_parquet(path)
    except LimitError as error:
        raise DataError(str(error)) from None
    except Exception as error:  # a damaged file can raise nearly anything
        about = " ".join(str(error).split())
        raise DataError(f"{path} is damaged, or no table in UTF-8: {about}.") from None


def _text_frame(
    pandas: Any, path: pathlib.Path, sep: str | None, decimal: str | None
) -> Any:
    """Return the columns of text, of which the first rows show what separates them."""
    check_read_size(str(path), _GROWTH * path.stat().st_size, _REMEDY)
    content = path.read_bytes()
    # Excel writes UTF-16 and lines such as sep=;
    encoding = "utf-16" if content[:1] in (b"\xff", b"\xfe") else "utf-8-sig"
    file = io.StringIO(content.decode(encoding), newline=None)
    lines = [line for line in file if line.strip() and not line.startswith("sep=")]
    head = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
    lines = [line for line in lines if not line.startswith("#")]
    if not lines:
        raise ValueError("it is empty")

    first = [line.strip(" \n") for line in lines[:_ROWS]]
    sep = sep.replace("\\t", "\t") if sep else None
    split = {
        by: list(csv.reader(first, delimiter=by, skipinitialspace=True))
        for by in ([sep] if sep else _SEPARATORS)
    }
    widths = {by: [len(row) for row in split[by]] for by in split}
    regular = (by for by in split if min(widths[by]) > 1 >= len({*widths[by][1:]}))
    sep = sep or next(regular, ",")
    words, *rows = [[word.strip() for word in row] for row in split[sep]]
    sample = " ".join(first)
    # Three digits behind a comma may as well be thousands.
    commas = re.search(r"[0-9],[0-9]{1,2}(?![0-9])|[0-9],[0-9]{4}", sample)
    has_points = sep == "," or re.search(r"[0-9]\.[0-9]", sample)
    decimal = decimal or ("," if commas and not has_points else ".")
    named = not all(_is_number(word, decimal) for word in words)
    if words == [str(i) for i in range(len(words))]:  # as pandas names columns
        named |= all(re.search("[0-9][.,][0-9]", " ".join(row)) for row in rows)
    names = words if named else [str(i) for i in range(1, len(words) + 1)]
    if head and not named:  # np.savetxt writes them as a comment
        last = next(csv.reader([head[-1].strip("# \n")], delimiter=sep))
        last = [word.strip() for word in last]
        is_like = len({*last}) == len(words) and not any(map(_is_number, last))
        names = last if is_like else names
    if named and {len(row) for row in rows} == {len(words) + 1}:
        names = ["", *names]  # R names rows in a column without a name
    # pandas only warns of rows that are longer than the header.
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        frame = pandas.read_csv(
            io.StringIO("".join(lines[named:])), sep=r"\s+" if sep == " " else sep,
            names=names, decimal=decimal, skipinitialspace=True, index_col=False,
            low_memory=False,
        )  # fmt: skip
    is_empty = [not name and frame[name].isna().all() for name in frame.columns]
    return frame.loc[:, np.logical_not(is_empty)]  # separators at the ends of lines


def _is_number(word: str, decimal: str = ".") -> bool:
    try:
        float(word.replace(decimal, "."))
    except ValueError:
        return False
    return True


def _numbers(path: pathlib.Path, name: str, column: Any) -> np.ndarray:
    if column.dtype.kind in "iufb":
        values = column.to_numpy(np.float64, na_value=np.nan)  # where a cell is empty
        bad = ~(np.abs(values) <= 1e15)
    else:
        values = np.array([str(value) for value in column])
        bad = np.array([not _is_number(word) for word in values])
        bad[0] |= not bad.any()  # text, although each word is a number
    if bad.any():
        raise DataError(
            f"{path}: column {name!r} must hold finite numbers of at most 1e15, but "
            f"has {str(values[bad][0])[:40]!r} in data row {bad.argmax() + 1}, and "
            f"{bad.sum()} of these. Give --decimal , if that is a decimal comma and "
            "none of thousands, --class-column if it names classes, or leave out the "
            "column or the rows."
        )
    check_rounding(f"{path}: column {name!r}", values)
    return values.astype(np.float32)


def _classes(
    path: pathlib.Path, name: str | None, frame: Any
) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    if name is None:
        return None, None
    known = np.asarray(frame[name].notna())
    values = frame[name][known].convert_dtypes()  # whole numbers may have become floats
    if not len(values) or values.dtype.kind == "f":
        raise DataError(
            f"{path}: column {name!r} must name classes, words or whole numbers, but "
            f"has {', '.join(map(str, values[:3])) or 'none in any row'}."
        )
    names, numbers = np.unique(values.to_numpy(), return_inverse=True)
    labels = np.full(len(frame), -1)
    labels[known] = numbers
    return labels, tuple(str(name) for name in names)


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401  which pandas needs for Parquet
    except ImportError:
        raise DataError(
            "CSV and Parquet files are read by pandas: pip install 'equistein[tables]'."
        ) from None
    return pandas
