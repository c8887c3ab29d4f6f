"""Elements, formulas and units."""

import collections
import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from equistein._check_arguments import check_arguments

SYMBOLS = tuple(
    """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn
    Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr
    Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr
    Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc
    Lv Ts Og""".split()
)
_NUMBERS = {symbol: number for number, symbol in enumerate(SYMBOLS, start=1)}

BOLTZMANN = 8.617333262e-5
"""The Boltzmann constant in eV / K."""

_HARTREE, _BOHR, _FARADAY = 27.211386245988, 0.529177210544, 96485.33212331
_ENERGIES = {  # in eV
    "ev": 1.0, "mev": 1e-3, "hartree": _HARTREE, "ha": _HARTREE, "eh": _HARTREE,
    "rydberg": _HARTREE / 2, "ry": _HARTREE / 2, "cm": 1.239841984e-4,
    "kcal": 4184 / _FARADAY, "kj": 1000 / _FARADAY,
}  # fmt: skip
_LENGTHS = {  # in Angstrom
    "angstrom": 1.0, "ang": 1.0, "a": 1.0, "å": 1.0, "bohr": _BOHR, "a0": _BOHR,
    "nm": 10.0, "nanometer": 10.0, "pm": 0.01, "picometer": 0.01,
}  # fmt: skip
Kind = Literal["energy", "force", "length"]

VALENCES = {"C": 4, "N": 3, "O": 2, "F": 1, "H": 1}
"""The valence of elements that have only one."""


@check_arguments
def atomic_numbers_of(symbols: Iterable[str]) -> tuple[int, ...]:
    """Return the atomic number of each element."""
    try:
        return tuple(_NUMBERS[symbol] for symbol in symbols)
    except KeyError as error:
        raise ValueError(f"There is no element {error}.") from None


@check_arguments
def unit_value(unit: str, kind: Kind) -> float:
    """Return a unit, by its name in ASE or pint, in eV, eV / Angstrom or Angstrom.

    Such as Hartree, kcal/mol/Angstrom or electron_volt; a.u. is the atomic unit.
    """
    text = re.sub("electron[ _]?volt", "ev", unit.strip().lower().replace("e_h", "eh"))
    text = text.replace("kilocalorie", "kcal").replace("kilojoule", "kj")
    if re.fullmatch(f"a[.]?u[.]?|atomic[ _]?units?([ _]of[ _]{kind})?", text):
        text = {"energy": "ha", "force": "ha/bohr", "length": "bohr"}[kind]
    words = re.split("[^a-zåö0]+", text)
    words = [word.removesuffix("s") for word in words if word not in ("", "per")]
    if words and words[0] in ("kcal", "kj"):
        words = [word for word in words if word not in ("mol", "mole")]
    tables = {"energy": [_ENERGIES], "force": [_ENERGIES, _LENGTHS]}
    pairs = zip(tables.get(kind, [_LENGTHS]), words, strict=True)
    try:
        first, *rest = (table[word] for table, word in pairs)
    except (KeyError, ValueError):
        some = {"energy": "eV or kcal/mol", "force": "Hartree/Bohr", "length": "Bohr"}
        such_as = f"give --{kind}-unit, such as {some[kind]}"
        raise ValueError(f"There is no unit {unit!r} of {kind}: {such_as}.") from None
    return first / rest[0] if rest else first


@check_arguments
def valences_of(symbols: Sequence[str]) -> np.ndarray:
    """Return the valence of each atom, of H, C, N, O and F."""
    if unknown := sorted(set(symbols) - set(VALENCES)):
        raise ValueError(f"{', '.join(unknown)} have several valences: use `perceive`.")
    return np.array([VALENCES[symbol] for symbol in symbols], int)


@check_arguments
def symbols_of(atomic_numbers: Sequence[int] | np.ndarray) -> tuple[str, ...]:
    """Return the symbol of each atomic number."""
    if others := [n for n in atomic_numbers if not 1 <= n <= len(SYMBOLS)]:
        raise ValueError(f"There is no element of atomic number {others[0]}.")
    return tuple(SYMBOLS[int(number) - 1] for number in atomic_numbers)


@check_arguments
def formula(symbols: Sequence[str]) -> str:
    """Return the formula in Hill's order, such as C5H8O: C, H, then by the alphabet."""
    counts = collections.Counter(symbols)
    order = ("C", "H") if "C" in counts else ()
    kinds = sorted(counts, key=lambda kind: (kind not in order, kind))
    return "".join(kind + str(counts[kind]) * (counts[kind] > 1) for kind in kinds)


@check_arguments
def atoms_of(formula: str) -> tuple[str, ...]:
    """Return the elements in a formula such as C5H8O, hydrogens last."""
    parts = re.findall(r"([A-Z][a-z]?)([1-9][0-9]{0,3}|)", formula)
    whole = "".join(symbol + number for symbol, number in parts) == formula
    if not parts or not whole or any(symbol not in SYMBOLS for symbol, _ in parts):
        raise ValueError(f"A formula is like C5H8O, but got {formula!r}.")
    symbols = [symbol for symbol, number in parts for _ in range(int(number or 1))]
    return tuple(sorted(symbols, key=lambda s: (s == "H", SYMBOLS.index(s))))
