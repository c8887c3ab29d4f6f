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

from equistein._extras import require
from equistein._limits import check_read_size, LimitError
from equistein.data._array_files import check_rounding, DataError

TABLES = (".csv", ".tsv", ".parquet")
_GROWTH = 6  # bytes of memory for a letter of text
_REMEDY = "leave rows out, or write them by np.save"
_SEPARATORS = ";\t|, "
_COMMENT = re.compile("#(?!N/A|DIV/0|VALUE|REF|NAME|NUM|NULL)|[%@]|//")  # no error
_INDEX = "(Unnamed: [0-9.]+|index|level_[0-9]|rownames)?"  # of pandas and R
_ROWS = 20  # that show what separates the columns
_SAMPLE = 1000  # rows that show what the columns hold
_NO_NUMBERS = {  # cells such as 2024-01-31, nan, 1,234.5 and 5 kg, and what to do
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}.*": "Leave out dates, by --columns",
    r"(?i)|nan|none|\W*n\W?a\W*|\W+|-?inf|-?\d[\d.]*e?[-+]?\d*": "Leave out these rows",
    r"[-+]?[\d.,' ]*,\d+.*": "Write no marks of thousands; for 1,5 give --decimal ,",
    r"\W?[-+ ]*[\d.].*": "Write the number alone, its unit in the name: x [nm]",
    ".*": "Give --class-column if it names classes, or leave out the column or rows",
}


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

    Lines that begin with #, %, // or @ are comments, but the last at the top may name
    the columns, as np.savetxt writes them. Without names they are called 1, 2 and so
    on. Columns of row numbers or names, as written by pandas and R, are left out unless
    they are among the `columns`.

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
    notes = list(frame.attrs.get("notes", ()))
    wanted = [*(columns or ()), *([] if class_column is None else [class_column])]
    is_index = lambda name: re.fullmatch(_INDEX, str(name))
    is_pandas = any(str(name).startswith("Unnamed: ") for name in frame.columns)
    for name in itertools.takewhile(is_index, frame.columns):
        is_unique, kind = frame[name].is_unique or is_pandas, frame[name].dtype.kind
        if name in wanted or kind in "fb" or (name and not is_unique):
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
    if labels is not None and (num := np.sum(labels < 0)):
        notes.append(f"{num} rows have no class: cells that are empty, NA or None.")
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
        check_read_size("the table", needed, _REMEDY)
        frame = pandas.read_parquet(path)
        frame.columns = ["_".join(map(str, np.atleast_1d(n))) for n in frame.columns]
        return frame.reset_index() if any(frame.index.names) else frame
    except (DataError, LimitError) as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # a damaged file can raise nearly anything
        about = " ".join(str(error).split())
        raise DataError(f"{path} is damaged, or no table in UTF-8: {about}.") from None


def _text_frame(
    pandas: Any, path: pathlib.Path, sep: str | None, decimal: str | None
) -> Any:
    """Return the columns of text, of which the first rows show what separates them."""
    check_read_size("the table", _GROWTH * path.stat().st_size, _REMEDY)
    content = path.read_bytes()
    # Excel writes UTF-16 and lines such as sep=;
    encoding = "utf-16" if content[:1] in (b"\xff", b"\xfe") else "utf-8-sig"
    file = io.StringIO(content.decode(encoding).replace("−", "-"), newline=None)
    lines = [line for line in file if line.strip() and not line.startswith("sep=")]
    head = list(itertools.takewhile(_COMMENT.match, lines))
    marked = [line for line in lines[len(head) :] if _COMMENT.match(line)]
    lines = [line for line in lines if not _COMMENT.match(line)]
    if not lines:
        raise ValueError("it is empty")

    first = [line.strip(" \n") for line in lines[:_SAMPLE]]
    by_commas = sep is None and decimal is None
    sep = sep.replace("\\t", "\t") if sep else None
    split = {
        by: list(csv.reader(first, delimiter=by, skipinitialspace=True))
        for by in ([sep] if sep else _SEPARATORS)
    }
    widths = {by: [len(row) for row in split[by][:_ROWS]] for by in split}
    regular = (by for by in split if min(widths[by]) > 1 >= len({*widths[by][1:]}))
    sep = sep or next(regular, ",")
    words, *rows = [[word.strip() for word in row] for row in split[sep]]
    decimal = decimal or _decimal_point(first, rows, sep)
    named, notes = _has_names(first, words, rows, decimal)
    names = words if named else [str(i) for i in range(1, len(words) + 1)]
    marked = [line.strip() for line in marked if line.count(sep) == len(words) - 1]
    if marked:
        text = f"{len(marked)} rows are left out as comments, as {marked[0]!r}"
        notes.append(f"{text}: put cells that begin so in quotes.")
    if by_commas and sep == "," and (not named or len(words) == 1):
        notes += _decimal_commas(first[named:], named)
    if head and not named:  # np.savetxt writes them as a comment
        last = next(csv.reader([head[-1].lstrip("#%/@ ").strip()], delimiter=sep))
        last = [word.strip() for word in last]
        is_like = len({*last}) == len(words) and not any(map(_is_number, last))
        names = last if is_like else names
    if named and {len(row) for row in rows} == {len(words) + 1}:
        names = ["", *names]  # R names rows in a column without a name
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"columns {twice} share a name: rename, names in one line.")
    # pandas only warns of rows that are longer than the header.
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        frame = pandas.read_csv(
            io.StringIO("".join(lines[named:])), sep=r"\s+" if sep == " " else sep,
            names=names, decimal=decimal, skipinitialspace=True, index_col=False,
            low_memory=False,
        )  # fmt: skip
    is_empty = [not name and frame[name].isna().all() for name in frame.columns]
    frame.attrs["notes"] = notes
    return frame.loc[:, np.logical_not(is_empty)]  # separators at the ends of lines


def _decimal_point(first: list[str], rows: list[list[str]], sep: str) -> str:
    """Return the decimal point of numbers, unless it may as well be of thousands."""
    for column in zip(*rows, strict=False):
        like = "-?([1-9][0-9]{0,2})([.][0-9]{3})?"
        parts = [re.fullmatch(like, word) for word in column if word != "0"]
        kinds = {bool(m[2]) for m in parts if m and (m[2] or len(m[1]) > 2)}
        if all(parts) and len(kinds) > 1:
            text = f"{', '.join(column[:3])}: give --decimal . if points are decimal"
            raise DataError(f"{text}, or write no points of thousands.")
    # Three digits behind a comma may as well be thousands.
    sample = " ".join(first)
    like = r"[0-9],[0-9]{1,2}(?![0-9])|[0-9],[0-9]{4}|(?<![0-9])0,[0-9]"
    commas = re.search(like, sample)
    has_points = sep == "," or re.search(r"[0-9]\.[0-9]", sample)
    return "," if commas and not has_points else "."


def _decimal_commas(lines: list[str], must_be: bool) -> list[str]:
    """Return a note if each line may be one number with a comma; raise if it must be.

    Two whole numbers with a comma between are neither -0 nor begin with 0.
    """
    if not lines or not all(re.fullmatch("-?[0-9]+,[0-9]+", line) for line in lines):
        return []
    text = f'{lines[-1]} may be one number: then give --sep ";" --decimal ,'
    if must_be or any(re.search("^-0,|,0[0-9]", line) for line in lines):
        raise DataError(f"{text} and otherwise --sep , alone.")
    return [f"{text}."]


def _has_names(
    first: list[str], words: list[str], rows: list[list[str]], decimal: str
) -> tuple[bool, list[str]]:
    """Return whether the first line names columns, and a note if it is of numbers."""
    if not all(_is_number(word, decimal) for word in words) or not rows:
        return True, []
    whole = lambda row: all(map(str.isdecimal, row))
    counts = lambda row: whole(row) and {*np.diff([*map(int, row)])} <= {1}
    named = '"' in first[0] and '"' not in "".join(first[1:])
    if counts(words) and (len(words) > 1 or words == ["0"]):  # of pandas, or years
        have_decimals = all(re.search("[0-9][.,e]", " ".join(row)) for row in rows)
        is_new = any({*row} - {*words} for row in rows)
        named |= have_decimals or (words[0] == "0" and is_new)
    is_odd = any(like(words) and not any(map(like, rows)) for like in (whole, counts))
    does = "names columns" if named else "is a point: quote it if these are names"
    return named, [f"The first line, {', '.join(words)}, {does}."] * (named or is_odd)


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
        word, place = str(values[bad][0]), bad.argmax() + 1
        remedy = next(v for k, v in _NO_NUMBERS.items() if re.fullmatch(k, word))
        if place == 1 == bad.sum() and re.match(r"(?!-?nan|-?inf)\W?[^\W\d]", word):
            remedy = "Put names or units into the first line, as x [nm]"
        raise DataError(
            f"{path}: column {name!r} must hold finite numbers of at most 1e15, but "
            f"has {word[:40]!r} in data row {place}, first of {bad.sum()}. {remedy}."
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
    values = values.str.strip() if values.dtype == "string" else values
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
    needs = "pandas", "tables", DataError
    require("pyarrow", *needs)  # for Parquet
    return require("pandas", *needs)
