"""Faults other than signals: of disks, folders, locks and caches."""

import shutil
import subprocess
import time

from fault_commands import COMMAND, command, SECONDS, unclear


def mounted(kinds, script):
    """Run a script of the shell where it may mount file systems for itself alone.

    Returns:
        What each of its commands told, parted by lines `status N`; None if not allowed.
    """
    allowed = subprocess.run(
        ["unshare", "-m", "true"], capture_output=True, check=False
    ) if shutil.which("unshare") else None  # fmt: skip
    if allowed is None or allowed.returncode:
        return None
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=kinds.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * SECONDS,
        errors="replace", check=False,
    )  # fmt: skip
    told, parts = "", []
    for line in done.stdout.splitlines():
        if line.startswith("status "):
            parts.append((told, int(line.removeprefix("status "))))
            told = ""
        else:
            told += line + "\n"
    return parts


def shell(kinds, kind, out):
    return " ".join(command(kinds.arguments[kind], out)) + "; echo status $?"


def full_disk(kinds, kind, draw, folder):
    """A disk that is full at a random place, and is given more room later."""
    disk, end = folder / "disk", folder / "end"
    disk.mkdir()
    out = disk / "out"
    size = draw.randrange(8, 640, 8)
    resume = f"{' '.join(COMMAND)} resume {out}; echo status $?"
    if kind == "run":  # an experiment continues by the same command
        resume = shell(kinds, kind, out)
    parts = mounted(
        kinds,
        f"mount -t tmpfs -o size={size}k none {disk}\n{shell(kinds, kind, out)}\n"
        f"find {disk} -name '*.part'; echo status 0\n"
        f"mount -o remount,size=64m {disk}\n"
        f"if [ -f {out}/config.json ]; then {resume}; else {shell(kinds, kind, out)}; "
        f"fi\ncp -r {out} {end}",
    )
    if parts is None:
        return "no file system can be mounted here"
    (told, status), (left, _), (again, last) = parts
    wrong = unclear(told, status, {0, 1, 2}) + unclear(again, last, {0})
    if left.strip():
        wrong.append(f"partial files on a disk of {size} KiB: {left}")
    if status and kind != "sweep" and "pace left" not in told:  # its runs have logs
        wrong.append(f"a disk of {size} KiB is not named: {told[-500:]}")
    return wrong if last else wrong + kinds.compared(kind, end)


def read_only(kinds, kind, draw, folder):
    """A disk that cannot be written from the start."""
    disk = folder / "disk"
    disk.mkdir()
    out = disk / "out"
    copy = f"cp -r {kinds.alone['run']} {out}" if kind == "report" else "true"
    parts = mounted(
        kinds,
        f"mount -t tmpfs none {disk}\n{copy}\nmount -o remount,ro {disk}\n"
        + shell(kinds, kind, out),
    )
    if parts is None:
        return "no file system can be mounted here"
    ((told, status),) = parts
    wrong = unclear(told, status, {2})
    return wrong if "ead-only" in told else [*wrong, f"it is not named: {told[-500:]}"]


def gone(kinds, kind, draw, folder):
    """A folder that is moved, or deleted, while the command runs."""
    out, there = folder / "out", folder / "there"
    process = kinds.begin(kinds.arguments[kind], out)
    _wait_for(out, process)
    kinds.wait(kind, process, draw.uniform(0.3, 0.95))
    out.rename(there)
    deleted = draw.random() < 0.5
    if deleted:
        shutil.rmtree(there)
    told, _ = process.communicate(timeout=SECONDS)
    wrong = unclear(told, process.returncode, {0, 2})
    if out.exists():
        wrong.append(f"the folder is made anew: {[p.name for p in out.iterdir()]}")
    return wrong + kinds.gone_on(kind, out if deleted else there)


def two_processes(kinds, kind, draw, folder):
    """A second process that would go on in the folder of the first."""
    out = folder / "out"
    first = kinds.begin(kinds.arguments[kind], out)
    _wait_for(out, first)
    kinds.wait(kind, first, draw.uniform(0.2, 0.8))
    again = kinds.arguments[kind] if kind == "run" else ["resume", "OUT"]
    second = kinds.begin(again, out)
    later, _ = second.communicate(timeout=SECONDS)
    told, _ = first.communicate(timeout=SECONDS)
    wrong = unclear(told, first.returncode, {0})
    wrong += unclear(later, second.returncode, {0, 2})
    if second.returncode == 2 and "Another process" not in later:
        wrong.append(f"the first is not named: {later[-500:]}")
    return wrong + kinds.compared(kind, out)


def damaged_compiled(kinds, kind, draw, folder):
    """Compiled programs in the cache whose files are cut off, changed or emptied."""
    cache = folder / "cache"
    shutil.copytree(kinds.place / "cache", cache)
    for path in cache.rglob("*-cache"):
        if path.is_file():
            damage(path, draw)
    process = kinds.begin(
        kinds.arguments[kind], folder / "out", EQUISTEIN_CACHE=str(cache)
    )
    told, _ = process.communicate(timeout=SECONDS)
    wrong = unclear(told, process.returncode, {0})
    return wrong or kinds.compared(kind, folder / "out")


def damage(path, draw):
    """Cut a file off, change some of its bytes, or empty it."""
    content = bytearray(path.read_bytes())
    way = draw.choice(["cut", "changed", "emptied"])
    for _ in range(3 if way == "changed" and content else 0):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    kept = {"cut": len(content) // 2, "changed": len(content), "emptied": 0}[way]
    path.write_bytes(content[:kept])


def _wait_for(out, process):
    while process.poll() is None and not (out / "environment.json").is_file():
        time.sleep(0.02)


EXTRAS = {
    "a full disk": (("run", "fit", "sweep"), full_disk),
    "a read-only disk": (("run", "fit", "report"), read_only),
    "the folder moved or deleted": (("run", "fit"), gone),
    "two processes": (("run", "fit", "sweep"), two_processes),
    "compiled programs damaged": (("run", "fit"), damaged_compiled),
}
"""Each other fault: the kinds of command that it is made for, and what makes it."""
