"""Gives every reader malformed files: `make fuzz`.

Whatever a file holds, a reader gives an error of its own or an answer, within 20 s and
2 GiB, beyond which its process gets no memory. Files are made from good ones by random
changes of a fixed seed. What once broke a reader stays in tests/corpus and is read in
the tests.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import fuzz_readers

CORPUS = pathlib.Path(__file__).parent / "corpus"
MEMORY = pathlib.Path("/dev/shm")  # a disk takes longer than most readers
SECONDS, BYTES = 20, 2**31
INTERESTING = [
    b"", b"0", b"-1", b"9" * 30, b"nan", b"1e999", b"\n", b"\0", b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff", b"{", b"[" * 2_000, b'"', b",", b"\x93NUMPY", b"PK\x03\x04",
]  # fmt: skip
TOKEN = re.compile(rb'"[^"]*"|-?\d[\d.eE+-]*|null|true|false')
VALUES = [
    b"null", b"true", b"[]", b"{}", b'"x"', b"[null]", b'{"x": 1}', b"-1", b"0",
    b"1e400", b"1" * 400, b"-1.5", b"[[1, 2], 3]", b'"' + b"y" * 999 + b'"',
]  # fmt: skip


def folder():
    """Return a new folder for files, in memory where there is such a place."""
    place = MEMORY if MEMORY.is_dir() else None
    return tempfile.TemporaryDirectory(dir=place)


def laid(place, reader, name, content):
    """Lay a file for a reader into an empty folder, with what else must be there."""
    path = place / name
    path.parent.mkdir(exist_ok=True)
    for other, held in fuzz_readers.companions(reader).items():
        (place / other).write_bytes(held)
    if reader == "png":
        (place / "other.png").write_bytes(content)
    path.write_bytes(content)
    return path


def trouble(reader, name, content, place=None):
    """Return what a reader should not have done with some content, or None.

    Its folder may be one that stays, in which files are replaced.
    """
    if place is None:
        with folder() as made:
            return trouble(reader, name, content, pathlib.Path(made))
    from equistein.runs import UserError

    def too_long(*_):
        raise TimeoutError(f"more than {SECONDS} s")

    before = _most_bytes()
    signal.signal(signal.SIGALRM, too_long)
    path = laid(place, reader, name, content)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fuzz_readers.read(reader, path)
    except Exception as error:
        ours = isinstance(error, ValueError) and _is_ours(error)
        cause = _hidden(error)
        if cause is None and (ours or isinstance(error, UserError)):
            return None
        cause = cause or error
        return f"{type(cause).__name__}: {cause}"[:300]
    finally:
        signal.alarm(0)
    used = _most_bytes()
    return f"{used} bytes of memory" if used - before > BYTES else None


def _most_bytes():
    """Return the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _hidden(error):
    """Return what no reader may turn into an error of its own: want of memory."""
    while error is not None:
        if isinstance(error, MemoryError | TimeoutError):
            return error
        error = error.__context__
    return None


def _is_ours(error):
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    return "equistein" in place.tb_frame.f_globals.get("__name__", "")


def mutated(draw, content):
    """Return content with a few random changes."""
    made = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at, kind = draw.randrange(len(made) + 1), draw.randrange(8)
        length = draw.choice([1, 2, 4, 20])
        if kind == 0 and at < len(made):
            made[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(made):
            made[at] = draw.randrange(256)
        elif kind == 2:
            made[at:at] = draw.choice(INTERESTING)
        elif kind == 3:
            del made[at : at + length]
        elif kind == 4:
            made[at : at + length] = draw.choice(INTERESTING)
        elif kind > 5 and (tokens := list(TOKEN.finditer(made))):
            token = draw.choice(tokens)
            made[token.start() : token.end()] = draw.choice(VALUES)
        else:
            made[at:at] = made[at : at + length] * draw.choice([1, 3, 200])
    return bytes(made[: draw.randrange(len(made) + 1)] if draw.random() < 0.1 else made)


def search(reader, name, seed_content, number, seed, last=None):
    """Try many changes of one file; return those that a reader does not stand.

    Each is written to the file `last` before it is read, should it end the process.
    """
    draw, found = random.Random(f"{seed} {reader}"), {}
    with folder() as made:
        for _ in range(number):
            content = mutated(draw, seed_content)
            if last is not None:
                last.write_bytes(content)
            told = trouble(reader, name, content, pathlib.Path(made))
            if told is not None and told not in found:
                found[told] = content
                print(f"{reader}: {told}", flush=True)
    return found


def limit_memory():
    """Let this process have no more than 2 GiB above what it has, where that works."""
    pages = pathlib.Path("/proc/self/statm")
    if pages.is_file():
        held = int(pages.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (held + BYTES,) * 2)


def one(reader, number, seed, last):
    """Search for one reader in this process; return how many files broke it."""
    name, content = fuzz_readers.seeds()[reader]
    trouble(reader, name, content)  # what is imported and compiled once
    limit_memory()
    began = time.monotonic()
    found = search(reader, name, content, number, seed, last)
    CORPUS.mkdir(exist_ok=True)
    for index, broken in enumerate(found.values()):
        (CORPUS / f"{reader}-{seed}-{index}").write_bytes(broken)
    seconds, mib = time.monotonic() - began, _most_bytes() // 2**20
    print(f"{reader}: {len(found)} of {number} broke it, {seconds:.0f} s, {mib} MiB")
    return len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=20_000, help="of files a reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="readers at a time")
    parser.add_argument("--reader", action="append")
    parser.add_argument("--last", type=pathlib.Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    readers = chosen.reader or list(fuzz_readers.seeds())
    if chosen.last:
        return int(one(readers[0], chosen.number, chosen.seed, chosen.last) > 0)

    def begin(reader):
        words = ["--number", chosen.number, "--seed", chosen.seed]
        words += ["--reader", reader]
        with folder() as made:
            last = pathlib.Path(made) / "last"
            command = [sys.executable, __file__, *map(str, words), "--last", last]
            environment = {"MALLOC_ARENA_MAX": "2"} | os.environ
            status = subprocess.run(command, env=environment, check=False).returncode
            if status < 0 and last.is_file():
                name = f"{reader}-{chosen.seed}-ended"
                (CORPUS / name).write_bytes(last.read_bytes())
                print(f"{reader}: ended by signal {-status}", flush=True)
        return status != 0

    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        return int(any(list(pool.map(begin, readers))))


if __name__ == "__main__":
    sys.exit(main())
