import sys

import numpy as np
import pytest

from equistein.data import DataError, read_points, read_table, Table, write_table

ROWS = "x [nm],kind,y [nm]\n1,cat,2\n3,dog,4.5\n-1e-3,,0\n"


@pytest.fixture
def file(tmp_path):
    def written(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_numbers_are_read_with_their_names_and_classes(separator, file):
    table = read_table(file(ROWS.replace(",", separator)), class_column="kind")
    assert table.columns == ("x [nm]", "y [nm]")
    assert table.points.dtype == np.float32
    assert np.allclose(table.points, [[1, 2], [3, 4.5], [-1e-3, 0]])
    assert table.classes == ("cat", "dog")
    assert list(table.labels) == [0, 1, -1]


def test_columns_are_chosen_in_their_order(file):
    table = read_table(file(ROWS), columns=["y [nm]", "x [nm]"])
    assert np.allclose(table.points[0], [2, 1])
    assert table.labels is None


def test_a_file_without_names_has_numbered_columns(file):
    table = read_table(file("1,2\n3,4\n5,6\n"))
    assert table.columns == ("1", "2")
    assert table.points.shape == (3, 2)


def test_whole_numbers_are_classes_too_and_may_be_open(file):
    table = read_table(file("x,c\n1,5\n2,\n3,7\n"), class_column="c")
    assert table.classes == ("5", "7")
    assert list(table.labels) == [0, -1, 1]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_what_is_written_is_read_again(suffix, tmp_path):
    points = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    labels = np.array([0, 1, -1, 1, 0])
    table = Table(points, ("a, b", 'c "d"'), labels, ("no", "yes"), "kind")
    path = tmp_path / f"table.{suffix}"
    write_table(path, table)
    again = read_table(path, class_column="kind")
    assert np.array_equal(again.points, points)
    assert again.columns == table.columns
    if suffix == "parquet":  # which has an empty word, where others have no value
        assert again.classes == ("", "no", "yes")
    else:
        assert again.classes == table.classes
        assert np.array_equal(again.labels, labels)
        separator = {"csv": ",", "tsv": "\t"}[suffix]
        last = path.read_text().splitlines()[-1]
        assert len(last.split(separator)) == 3


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (
            ROWS,
            {},
            "column 'kind' must hold finite numbers of at most 1e15, but has 'cat' in",
        ),
        (ROWS, {"class_column": "sort"}, "no column 'sort', but 'x [nm]', 'kind', "),
        (ROWS, {"columns": ["z"]}, "no column 'z'"),
        (ROWS, {"class_column": "y [nm]", "columns": ["x [nm]"]}, "but has 2.0, 4.5"),
        (
            "x,y\n1,2\n3,\n5,6\n7,\n",
            {},
            "has 'nan' in data row 2, first of 2. Leave",
        ),
        ("x,y\n1,2\n3,4 nm\n", {}, "has '4 nm' in data row 2"),
        ("x,y\n1,2\n3,inf\n", {}, "at most 1e15, but has 'inf' in data row 2"),
        ("x,y\n1,2\n3,1e300\n", {}, "at most 1e15"),
        ("x,x\n1,2\n3,4\n", {}, "columns ['x', 'x'] share a name"),
        ("a,a,b\nx,y,x\n1,2,3\n4,5,6\n", {}, "rename, names in one line"),
        ("x,y\nnm,s\n1,2\n3,4\n", {}, "units into the first line"),
        ("x,y\n1,NA\n3,4\n", {}, "Leave out these rows"),
        ("x,y\n#N/A,2\n3,4\n5,6\n", {}, "has 'nan' in data row 1"),
        ("x,y\n1,2\n#DIV/0!,4\n5,6\n", {}, "'#DIV/0!' in data row 2"),
        ("x,y\ns1,2\ns2,4\n", {}, "or leave out the column"),
        ("x,y\n1,2024-01-31\n3,2024-02-01\n", {}, "Leave out dates"),
        ('x,y\n1,2\n3,"125,730.22"\n', {}, "no marks of thousands"),
        ("x,y\n1,2%\n3,4%\n", {}, "Write the number alone"),
        ("temp\n20,00\n21,37\n22,74\n", {}, '--sep ";" --decimal ,'),
        ("402,23\n398,05\n401,77\n", {}, '--sep ";" --decimal ,'),
        ("a;b\n1.059;384\n1.113;2.257\n", {}, "--decimal ."),
        ("x,y\n1,2\n", {}, "at least two rows"),
        ("x,y\n1,2\n3,4,5\n", {}, "damaged, or no table"),
        ("x,y\n1,2,3\n4,5\n", {}, "damaged, or no table"),
        ("", {}, "damaged, or no table"),
        ("\0\0\0", {}, "table.csv"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_with_column_and_row(
    text, options, said, file
):
    with pytest.raises(DataError) as caught:
        read_table(file(text), **options)
    assert said in str(caught.value)


def test_a_file_that_is_too_large_is_refused(file, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "10")
    with pytest.raises(DataError, match="at most 9.31e-09 GiB"):
        read_table(file(ROWS))


def test_without_pandas_the_command_that_installs_it_is_told(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DataError, match=r"pip install 'equistein\[tables\]'"):
        read_table(file(ROWS))


@pytest.mark.parametrize("word", ["inf", "1e999", "1e300"])
def test_a_class_that_is_no_whole_number_is_told(word, tmp_path):
    (tmp_path / "x.csv").write_text(f"a,kind\n1,{word}\n2,3\n")
    with pytest.raises(DataError, match="whole numbers, but has"):
        read_table(tmp_path / "x.csv", class_column="kind")


XY = "x,y\n1.5,2\n3,4.5\n5,6\n"
INDEXED = [
    ",x,y\n0,1.5,2\n1,3,4.5\n2,5,6\n",  # pandas
    ",x,y\n7,1.5,2\n2,3,4.5\n4,5,6\n",  # of shuffled rows
    "Unnamed: 0,x,y\n0,1.5,2\n1,3,4.5\n2,5,6\n",
    ",Unnamed: 0,x,y\n0,0,1.5,2\n1,1,3,4.5\n2,2,5,6\n",
    ",Unnamed: 0.1,Unnamed: 0,x,y\n0,0,5,1.5,2\n1,1,5,3,4.5\n0,2,5,5,6\n",  # joined
    "level_0,level_1,x,y\n0,0,1.5,2\n1,4,3,4.5\n2,5,5,6\n",
    "index;x;y\n0;1,5;2\n1;3;4,5\n2;5;6\n",
    '"x" "y"\n"1" 1.5 2\n"2" 3 4.5\n"3" 5 6\n',  # R
    '"","x","y"\n"Ada",1.5,2\n"Bob",3,4.5\n"Cy",5,6\n',
]
AS_XY = [
    XY,
    XY.replace("x,y", "#x,y"),
    "\ufeff" + XY.replace(",", ";").replace(".", ",").replace("\n", "\r\n"),  # Excel
    XY.replace(",", "\t").replace(".", ","),
    "# one\n\n# two\n" + XY.replace("3,", "# three\n3,") + "# four\n",
    "x   y\n 1.5  2.0\n 3.0  4.5\n 5.0  6.0\n",
    "x,y,\n1.5,2,\n3,4.5,\n5,6,\n",
    "x,y,\n1.5,2,\n3,4.5,\n5,6,\n".replace(",", ";").replace(".", ","),
    "sep=;\n" + XY.replace(",", ";"),  # Excel
    XY.replace("x,y", "x , y"),
    XY.replace("\n", "\r"),
    "% one\n// two\n@ three\n" + XY,
    f"# by a program\n# {XY}",  # NumPy
]


@pytest.mark.parametrize("text", [*INDEXED, *AS_XY])
def test_tables_of_other_programs(text, file):
    table = read_table(file(text))
    assert table.columns == ("x", "y")
    assert np.allclose(table.points, [[1.5, 2], [3, 4.5], [5, 6]])
    assert bool(table.notes) == (text in INDEXED)


def test_a_minus_of_typesetters_is_one(file):
    table = read_table(file("x,y\n−1.5,2\n3,−4.5e−1\n"))
    assert np.allclose(table.points, [[-1.5, 2], [3, -0.45]])


def test_a_comment_of_other_words_than_columns_names_none(file):
    for comment in ("# a b c", "# 1 2", "# a a"):
        text = f"{comment}\n1.5 2\n3 4.5\n"
        assert read_table(file(text)).columns == ("1", "2")


def test_an_index_is_read_if_it_is_wanted(file):
    wanted = read_table(file(INDEXED[0]), columns=["", "x"])
    assert np.allclose(wanted.points[:, 0], [0, 1, 2])


def test_text_in_utf16_is_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(XY.replace(",", "\t").encode("utf-16"))
    assert read_table(tmp_path / "a.csv").columns == ("x", "y")


@pytest.mark.parametrize(
    ("text", "rows", "note"),
    [
        ("0,1\n9,7\n3,4\n", 2, "names columns"),
        ("0,1\n1,0\n0.5,3\n", 2, "names columns"),
        ("2019,2020\n0.12,-0.13\n0.2,0.1\n", 2, "names columns"),
        ('"5","9"\n1,2\n3,4\n', 2, "names columns"),
        ("100,200\n0.12,-0.13\n0.2,0.1\n", 3, "is a point"),
        ("0,1\n1,0\n0,0\n1,1\n", 4, "is a point"),
        ("0.5,1\n1.5,2\n3,4.5\n", 3, ""),
        ("3;7\n2;5\n6;4\n", 3, ""),
        ("12,34\n56,78\n", 2, "78 may be one number"),
    ],
)
def test_names_may_be_numbers_as_of_pandas(text, rows, note, file):
    table = read_table(file(text))
    assert table.points.shape == (rows, 2)
    assert note in " ".join(table.notes) if note else not table.notes


@pytest.mark.parametrize("offset", [5_412_345.67, 2**40])
def test_numbers_that_single_precision_rounds_off_are_refused(offset, file, tmp_path):
    x = offset + np.arange(20) % 7 / 7
    with pytest.raises(DataError, match="column 'x' .*subtract a constant"):
        read_table(file("x\n" + "\n".join(f"{value:.17g}" for value in x)))
    np.save(tmp_path / "a.NPY", x[:, None])
    (tmp_path / "a.NPY.npy").rename(tmp_path / "a.NPY")
    with pytest.raises(DataError, match="subtract a constant"):
        read_points(tmp_path / "a.NPY")
    constant = offset * (1 + 1e-16 * np.arange(18).reshape(9, 2))
    np.save(tmp_path / "a.npy", constant)
    assert read_points(tmp_path / "a.npy").shape == (9, 2)


def test_what_a_comma_means_is_asked(file):
    path = file("x\n1,5\n-0,25\n1,75\n")
    with pytest.raises(DataError, match='--sep ";" --decimal ,'):
        read_table(path)
    assert read_table(path, sep=";", decimal=",").points.shape == (3, 1)
    path = file(",x\n0,1.5\n1,2\n0,3\n")  # pandas, of tables that were joined
    with pytest.raises(DataError, match="no name"):
        read_table(path)
    assert read_table(path, columns=["x"]).points.shape == (3, 1)
    path = file("x;y\n1,200;2,100\n1,300;2,500\n")
    with pytest.raises(DataError, match="--decimal"):
        read_table(path)
    assert np.allclose(read_table(path, decimal=",").points[0], [1.2, 2.1])
    table = read_table(file('x,y\n"1,5","2"\n"3","4,5"\n'), decimal=",")
    assert np.allclose(table.points, [[1.5, 2], [3, 4.5]])
    table = read_table(file("x:y\n1:2\n3:4\n"), sep=":")
    assert table.columns == ("x", "y")


def test_rows_that_look_like_comments_are_told(file):
    rows = "".join(f"{name},0.{i},0.5\n" for i in range(3) for name in ("@a", "b"))
    table = read_table(file(f"tag,x,y\n{rows}"), class_column="tag")
    assert len(table.points) == 3
    assert "3 rows are left out as comments" in "".join(table.notes)
    table = read_table(file("# a, b\nx,y\n1,2\n# warm-up ends\n3,4\n"))
    assert not table.notes


def test_classes_without_a_name_are_told_and_spaces_make_no_class(file):
    table = read_table(file("x,ion\n1,NA\n2,K \n3,K\n"), class_column="ion")
    assert table.classes == ("K",)
    assert "1 rows have no class" in "".join(table.notes)


def test_an_index_of_parquet_that_has_a_name_is_a_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [0.5, 1.5, 2.5], "y": [1.0, 0.0, 3.0]})
    frame.set_index("x").to_parquet(tmp_path / "named.parquet")
    assert read_table(tmp_path / "named.parquet").columns == ("x", "y")
    frame.columns = [0, 1]
    frame.to_parquet(tmp_path / "numbered.parquet")
    assert read_table(tmp_path / "numbered.parquet").columns == ("0", "1")
    frame.columns = pandas.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    frame.to_parquet(tmp_path / "nested.parquet")
    assert read_table(tmp_path / "nested.parquet").columns == ("a_x", "a_y")


def test_decimal_commas_after_a_zero_are_no_thousands(file):
    table = read_table(file("x;y\n0,346;0,822\n0,125;0,500\n"))
    assert np.allclose(table.points, [[0.346, 0.822], [0.125, 0.5]])
