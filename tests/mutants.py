"""Change the code in one place, and see whether the tests of its package notice.

    python tests/mutants.py --num 400 --seed 0 --jobs 2 --out mutants.jsonl

First come the `NAMED` changes, then `--num` random ones by operators of Cosmic Ray;
types, texts and errors are left alone. What `--out` has is not run again. The exit
status is 1 if one of the `NAMED` survives, or more than 15 of 100 random ones.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import json
import os
import pathlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time

import cosmic_ray.ast
import cosmic_ray.mutating
import cosmic_ray.plugins
import parso

from named_mutants import NAMED
from tests_of_lines import TestsOfLines

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = "src/equistein/"
MOST_SURVIVORS = 0.15
PASSED = (0, 5)  # exit statuses of pytest: all passed, or there was none
SECONDS = 600  # for the tests of one change
MARKS = {"quick": "not slow and not gpu", "slow": "slow and not heavy and not gpu"}
KEPT = ROOT / ".venv/mutants"  # which tests run which lines
PACKAGES = {  # what is changed, and the tests that must notice
    "groups": (
        ["groups"], ["units/groups", "contracts/test_groups.py",
        "contracts/test_group_samples.py", "contracts/test_wrong_arguments.py"],
    ),
    "kernels": (
        ["kernels"], ["units/kernels", "contracts/test_kernels.py",
        "contracts/test_kernel_symmetry.py", "contracts/test_kernel_checks.py",
        "contracts/test_kernel_stein_identity.py",
        "contracts/test_wrong_arguments.py"],
    ),
    "samplers": (
        ["samplers"], ["units/samplers", "contracts/test_sampler_steps.py",
        "contracts/test_samplers.py", "contracts/test_many_runs.py",
        "contracts/test_sampler_loops.py", "contracts/test_devices.py",
        "units/test_bad_input.py", "contracts/test_wrong_arguments.py",
        "units/bridges/test_energy_forces.py"],
    ),
    "metrics": (
        ["metrics"], ["units/metrics", "contracts/test_metrics.py",
        "contracts/test_wrong_arguments.py"],
    ),
    "training": (
        ["training"], ["units/training", "contracts/test_training_parts.py",
        "contracts/test_wrong_arguments.py"],
    ),
    "readers": (
        ["data", "molecules/_files.py", "_limits.py"],
        ["units/data", "units/molecules/test_xyz.py", "units/test_bad_input.py",
        "units/test_limits.py"],
    ),
}  # fmt: skip
TESTS = {name: tests for name, (_, tests) in PACKAGES.items()} | {
    "energies": ["units/energies", "contracts/test_energies.py"],
    "targets": ["units/targets", "contracts/test_targets.py"],
    "runs": ["units/runs"],
}
OPERATORS = (
    "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr",
    "ReplaceOrWithAnd", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak",
    "NumberReplacer", "ZeroIterationForLoop", "ReplaceComparisonOperator_",
    "ReplaceUnaryOperator_USub_Delete", "ReplaceUnaryOperator_Delete",
)  # fmt: skip
# Of arithmetic one change each: others seldom run at all.
ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Pow_Mul")
NO_CODE = {"string", "annassign", "tfpdef", "import_name", "import_from", "fstring"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A change: the package whose tests must notice, the file, and its new text."""

    name: str
    package: str
    path: str
    text: str

    def line(self) -> int:
        """Return the number of the first line that changes."""
        before = (ROOT / SOURCE / self.path).read_text().splitlines()
        pairs = enumerate(zip(before, self.text.splitlines(), strict=False), start=1)
        return next((i for i, (old, new) in pairs if old != new), len(before))

    def difference(self) -> str:
        """Return the lines that change."""
        before = (ROOT / SOURCE / self.path).read_text().splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if line[:2] not in ("--", "++", "@@"))


def named() -> list[Mutant]:
    """Return the changes made by hand."""
    found = []
    for name, (package, path, before, after) in NAMED.items():
        text = (ROOT / SOURCE / path).read_text()
        if text.count(before) != 1:
            raise ValueError(f"{path} must have {before!r} once: mend `NAMED`.")
        found.append(Mutant(name, package, path, text.replace(before, after)))
    return found


def is_code(node: parso.tree.NodeOrLeaf | None) -> bool:
    """Return whether a node is run: no type, text, import or the words of an error."""
    while node is not None:
        parent = node.parent
        if node.type in NO_CODE or node.type == "raise_stmt":
            return False
        if parent is not None and parent.type == "funcdef":
            returned = parent.annotation
            if returned is node:
                return False
        node = parent
    return True


def operators() -> list[str]:
    """Return the names of the operators that are used."""
    every = sorted(cosmic_ray.plugins.operator_names())
    arithmetic = [f"core/ReplaceBinaryOperator_{name}" for name in ARITHMETIC]
    some = tuple(f"core/{name}" for name in OPERATORS)
    return [name for name in every if name.startswith(some) or name in arithmetic]


def places() -> list[tuple[str, str, str, int]]:
    """Return all changes: package, file, operator and which of its places."""
    found = []
    for package, (sources, _) in PACKAGES.items():
        for source in sources:
            path = ROOT / SOURCE / source
            for file in sorted(path.rglob("*.py") if path.is_dir() else [path]):
                if file.name == "__init__.py":
                    continue
                nodes = list(cosmic_ray.ast.ast_nodes(parso.parse(file.read_text())))
                name = str(file.relative_to(ROOT / SOURCE))
                for operator_name in operators():
                    operator = cosmic_ray.plugins.get_operator(operator_name)()
                    count = 0
                    for node in nodes:
                        for _ in operator.mutation_positions(node):
                            if is_code(node):
                                found.append((package, name, operator_name, count))
                            count += 1
    return found


def drawn(num: int, seed: int) -> list[Mutant]:
    """Return random changes."""
    found = []
    for package, path, operator_name, count in random.Random(seed).sample(
        places(), num
    ):
        operator = cosmic_ray.plugins.get_operator(operator_name)()
        before = (ROOT / SOURCE / path).read_text()
        text = cosmic_ray.mutating.mutate_code(before, operator, count)
        name = f"{path}:{operator_name.removeprefix('core/')}:{count}"
        found.append(Mutant(name, package, path, text))
    return found


def survives(
    mutant: Mutant, tests: list[str] | None, marks: str, copy: pathlib.Path
) -> bool:
    """Return whether the tests, None for all, pass with the change in a copy."""
    if tests is None:
        tests = [f"tests/{test}" for test in TESTS[mutant.package]]
    path = copy / SOURCE / mutant.path
    kept = path.read_text()
    path.write_text(mutant.text)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    try:
        ran = subprocess.run(
            [*command, "-m", marks, *tests], cwd=copy, env=environment,
            timeout=SECONDS, capture_output=True,
        )  # fmt: skip
        return ran.returncode in PASSED
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(kept)


def copied(folder: pathlib.Path) -> pathlib.Path:
    """Return a copy of what the tests need of the repository."""
    for part in ("src", "tests", "docs", "benchmarks"):
        shutil.copytree(ROOT / part, folder / part)
    for part in ("pyproject.toml", "README.md", "mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / part, folder / part)
    return folder


def judged(
    mutants: list[Mutant], speed: str, jobs: int, out: pathlib.Path
) -> dict[str, bool]:
    """Return for each change whether it survived, and print each as it is known.

    A change that was killed, or tried by these tests before, is not tried again.
    """
    lines = out.read_text().splitlines() if out.exists() else []
    known = {entry["name"]: entry for entry in map(json.loads, lines)}
    tried = lambda entry: not entry["survived"] or entry["tests"] in (speed, "slow")
    todo = [m for m in mutants if m.name not in known or not tried(known[m.name])]
    tests_of = {
        package: TestsOfLines(
            TESTS[package], MARKS[speed], KEPT / f"{package}-{speed}", jobs
        )
        for package in sorted({mutant.package for mutant in todo})
    }
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[pathlib.Path] = queue.Queue()
        for number in range(jobs):
            copies.put(copied(pathlib.Path(folder) / str(number)))

        def judge(mutant: Mutant) -> None:
            copy, begun = copies.get(), time.monotonic()
            tests = tests_of[mutant.package].of(mutant.path, mutant.line())
            survived = tests == [] or survives(mutant, tests, MARKS[speed], copy)
            copies.put(copy)
            entry = {
                "name": mutant.name, "package": mutant.package, "survived": survived,
                "tests": speed, "num_tests": None if tests is None else len(tests),
                "seconds": round(time.monotonic() - begun),
                "change": mutant.difference(),
            }  # fmt: skip
            with out.open("a") as file:
                file.write(json.dumps(entry) + "\n")
            known[mutant.name] = entry
            word = "SURVIVED" if survived else "killed"
            print(f"{word} {mutant.name} ({entry['seconds']} s)", flush=True)
            if survived:
                print(entry["change"], flush=True)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(judge, todo))
    return {mutant.name: known[mutant.name]["survived"] for mutant in mutants}


def main(arguments: list[str]) -> int:
    """Judge all, and tell how many were killed in each package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default="mutants.jsonl")
    parser.add_argument("--quick", action="store_true", help="leave slow tests out")
    options = parser.parse_args(arguments)
    by_hand, random_ones = named(), drawn(options.num, options.seed)
    for speed in ("quick",) if options.quick else ("quick", "slow"):
        survived = judged(by_hand + random_ones, speed, options.jobs, options.out)
    for package in PACKAGES:
        those = [survived[m.name] for m in random_ones if m.package == package]
        print(f"{package}: {those.count(False)} of {len(those)} killed")
    lived = [mutant.name for mutant in by_hand if survived[mutant.name]]
    killed = sum(not survived[mutant.name] for mutant in random_ones)
    print(f"by hand: {len(by_hand) - len(lived)} of {len(by_hand)} killed", *lived)
    print(f"random: {killed} of {len(random_ones)} killed")
    return int(bool(lived) or killed < (1 - MOST_SURVIVORS) * len(random_ones))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
