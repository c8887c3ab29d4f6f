"""Tables with named columns: CSV and Parquet, in and out."""

import csv
import dataclasses
import pathlib
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equistein._limits import check_read_size, LimitError
from equistein.data._array_files import DataError

TABLES = (".csv", ".tsv", ".parquet")
_LONGEST = 2**20  # characters of the header line
_GROWTH = 4  # bytes of memory for a letter of text
_REMEDY = "leave rows out, or write them by np.save"
_DELIMITERS = ";\t|,"
_SPACES = r"\s+"
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

    Lines that begin with # are comments. Without a row of names columns are called 1, 2
    and so on. A column of row numbers or names, as written by pandas and R, is left
    out unless it is one of the `columns`.

    Args:
        path: A file that ends in .csv, .tsv or .parquet. It is read with pandas.
        columns: Those to read, in this order; by default all but that of the classes.
        class_column: The column of the classes, numbers or words, which are numbered
            in their order; it may be empty in some rows.
        sep: What separates columns: `,`, `;`, a tab, `|` or spaces. By default that
            which all of the first lines have.
        decimal: The decimal point, `.` or `,`; by default as the numbers look.

    Raises:
        DataError: If pandas is missing, the file is damaged or too large, or a column
            is missing, or has words or no value in some row.
    """
    path = pathlib.Path(path)
    frame = _frame(path, sep, decimal)
    wanted = [*(columns or ()), *([] if class_column is None else [class_column])]
    notes: list[str] = []
    while len(frame.columns) and _is_index(frame.iloc[:, 0], wanted):
        name = frame.columns[0]
        frame = frame.drop(columns=name)
        name = f"column {name!r}" if name else "first column, without a name,"
        notes.append(f"The {name} numbers or names the rows: it is left out.")
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
    _check_numbers(path, {name: frame[name] for name in chosen})
    points = np.stack([_numbers(path, name, frame[name]) for name in chosen], axis=1)
    labels, classes = None, None
    if class_column is not None:
        labels, classes = _classes(path, class_column, frame[class_column])
    return Table(points, tuple(chosen), labels, classes, class_column, tuple(notes))


def write_table(path: pathlib.Path | str, table: Table) -> None:
    """Write a table into a CSV or Parquet file, which `read_table` reads.

    Args:
        path: A file that ends in .csv, .tsv or .parquet, replaced if it exists.
        table: The table; classes are written by their names.

    Raises:
        DataError: If pandas, or pyarrow for Parquet, is missing.
    """
    path, pandas = pathlib.Path(path), _pandas()
    frame = pandas.DataFrame(table.points, columns=list(table.columns))
    if table.labels is not None:
        names = np.array([*(table.classes or ()), ""], object)
        words = names[table.labels] if table.classes else table.labels
        frame[table.class_column or "class"] = words
    try:
        if path.suffix.lower() == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            frame.to_csv(path, index=False, sep=separator)
    except ImportError:
        raise _missing() from None


def _is_index(column: Any, wanted: Sequence[str]) -> bool:
    """Return whether a first column numbers or names the rows, and is not wanted."""
    if column.name in wanted or column.name not in _INDEX:
        return False
    return column.dtype.kind not in "fb" and column.is_unique


def _frame(path: pathlib.Path, sep: str | None, decimal: str | None) -> Any:
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    if not is_table(path):
        raise DataError(f"{path} must end in one of {', '.join(TABLES)}.")
    pandas = _pandas()
    try:
        if path.suffix.lower() == ".parquet":
            _check_parquet(path)
            return pandas.read_parquet(path)
        check_read_size(str(path), _GROWTH * path.stat().st_size, _REMEDY)
        encoding = _encoding(path)
        skip, rows, sep = _first_rows(path, sep, encoding)
        decimal = decimal or _decimal(path, rows)
        words = [word.strip() for word in rows[0]]
        named = not all(_is_number(word, decimal) for word in words)
        names = words if named else [str(i) for i in range(1, len(words) + 1)]
        widths = {len(row) for row in rows[1:]}
        if named and widths == {len(words) + 1}:
            names = ["", *names]  # R names rows in a column without a name
        # pandas only warns of rows that are longer than the header.
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                path, sep=sep, names=names, decimal=decimal, skiprows=skip + named,
                comment=None if "#" in "".join(words) else "#", encoding=encoding,
                skipinitialspace=True, index_col=False, low_memory=False,
            )  # fmt: skip
        is_empty = [not name and frame[name].isna().all() for name in frame.columns]
        return frame.loc[:, np.logical_not(is_empty)]  # separators at the ends of lines
    except ImportError:
        raise _missing() from None
    except DataError:
        raise
    except LimitError as error:
        raise DataError(str(error)) from None
    except Exception as error:  # a damaged file can raise nearly anything
        about = " ".join(str(error).split())
        raise DataError(f"{path} is damaged, or no table: {about}.") from None


def _check_parquet(path: pathlib.Path) -> None:
    """Raise unless the columns fit into memory, by the file's metadata."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        about = file.metadata
        groups = map(about.row_group, range(about.num_row_groups))
        unpacked = sum(group.total_byte_size for group in groups)
        needed = max(8 * about.num_rows * about.num_columns, unpacked)
    check_read_size(str(path), max(needed, path.stat().st_size), _REMEDY)


def _encoding(path: pathlib.Path) -> str:
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        content.decode()
    except UnicodeDecodeError:  # Excel's, in Europe and America
        return "cp1252"
    return "utf-8-sig"


def _first_rows(
    path: pathlib.Path, sep: str | None, encoding: str
) -> tuple[int, list[list[str]], str]:
    """Return how many lines precede the table, its first rows, and the separator."""
    skip, lines = 0, []
    with path.open(encoding=encoding, newline="") as file:
        while len(lines) < _ROWS and (line := file.readline(_LONGEST)):
            if line.strip() and not line.startswith("#"):
                lines.append(line)
            elif not lines:
                skip += 1
    excel = re.fullmatch("(?i)sep=(.)\\s*", lines[0]) if lines else None
    if excel:  # as Excel writes
        skip, lines, sep = skip + 1, lines[1:], sep or excel.group(1)

    def split(delimiter: str) -> list[list[str]]:
        if delimiter == _SPACES:
            lined = [" ".join(line.split()) for line in lines]
            return list(csv.reader(lined, delimiter=" "))
        return list(csv.reader(lines, delimiter=delimiter))

    if sep is not None:
        sep = _SPACES if not sep.strip(" ") else sep.replace("\\t", "\t")
    for delimiter in (*_DELIMITERS, _SPACES) if sep is None else ():
        widths = [len(row) for row in split(delimiter)]
        if min(widths, default=1) > 1 and len(set(widths[1:])) <= 1:
            sep = delimiter
            break
    first = lines[0] if lines else ""
    sep = sep or max(_DELIMITERS, key=first.count)
    return skip, split(sep) or [[]], sep


def _decimal(path: pathlib.Path, rows: Sequence[Sequence[str]]) -> str:
    """Return the decimal point of the words in the rows."""
    words = [word.strip() for row in rows for word in row]
    commas = [word for word in words if re.fullmatch(r"[+-]?[0-9]*,[0-9]+(e.*)?", word)]
    points = any(re.fullmatch(r"[+-]?[0-9]*\.[0-9]+(e.*)?", word) for word in words)
    if not commas or points:
        return "."
    if all(re.search(",[0-9]{3}$", word) for word in commas):
        raise DataError(
            f"{path} has {commas[0]!r}, where the comma may be a decimal point or "
            'separate thousands: give --decimal , (`decimal=","` in Python) or .'
        )
    return ","


def _is_number(word: str, decimal: str = ".") -> bool:
    try:
        float(word.replace(decimal, "."))
    except ValueError:
        return False
    return True


def _check_numbers(path: pathlib.Path, columns: Mapping[str, Any]) -> None:
    """Raise if columns hold text."""
    texts = [
        name for name, column in columns.items() if column.dtype.kind not in "iufb"
    ]
    if not texts:
        return
    words = [str(value) for value in columns[texts[0]]]
    wrong = next((i for i, word in enumerate(words) if not _is_number(word)), 0)
    comma = re.fullmatch("[+-]?[0-9]*,[0-9]+", words[wrong].strip())
    raise DataError(
        f"{path}: column {texts[0]!r} must hold numbers, but has {words[wrong][:40]!r} "
        f"in data row {wrong + 1}{'; so do ' * bool(texts[1:])}"
        f"{', '.join(map(repr, texts[1:9]))}. "
        + "Give --decimal , if it is a decimal comma. "
        * bool(comma)
        + "Give it as `class_column` if it names classes; write a unit into the "
        "column's name; or leave it out by `columns`."
    )


def _numbers(path: pathlib.Path, name: str, column: Any) -> np.ndarray:
    values = column.to_numpy(np.float64, na_value=np.nan)  # where a cell is empty
    bad = ~(np.abs(values) <= 1e15)
    if bad.any():
        raise DataError(
            f"{path}: column {name!r} must hold finite numbers of at most 1e15, but "
            f"has {values[bad][0]} in data row {bad.argmax() + 1}, and {bad.sum()} of "
            "these. Leave out these rows, or the column by `columns`."
        )
    return values.astype(np.float32)


def _classes(
    path: pathlib.Path, name: str, column: Any
) -> tuple[np.ndarray, tuple[str, ...]]:
    known = np.asarray(column.notna())
    values = column[known]
    if values.dtype.kind == "f":
        odd = (values != np.round(values)) | ~(np.abs(values) < 2**53)
        if odd.any():
            raise DataError(
                f"{path}: column {name!r} must name classes, words or whole numbers, "
                f"but has {float(values[odd].iloc[0])}."
            )
        values = values.astype(int)  # an empty cell made it so
    if not len(values):
        raise DataError(f"{path}: column {name!r} names no class in any row.")
    names, numbers = np.unique(values.to_numpy(), return_inverse=True)
    labels = np.full(len(column), -1)
    labels[known] = numbers
    return labels, tuple(str(name) for name in names)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise _missing() from None
    return pandas


def _missing() -> DataError:
    return DataError(
        "CSV and Parquet files are read by pandas: pip install 'equistein[tables]'."
    )
