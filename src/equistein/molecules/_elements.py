"""Elements, formulas and units."""

import collections
import re
from collections.abc import Iterable, Sequence

import numpy as np

from equistein._check_arguments import check_arguments

SYMBOLS = tuple(
    """
    H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga
    Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr
    Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr
    Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc
    Lv Ts Og
    """.split()
)
_NUMBERS = {symbol: number for number, symbol in enumerate(SYMBOLS, start=1)}

BOLTZMANN = 8.617333262e-5
"""The Boltzmann constant in eV / K."""

VALENCES = {"C": 4, "N": 3, "O": 2, "F": 1, "H": 1}
"""The valence of elements that have only one."""


@check_arguments
def atomic_numbers_of(symbols: Iterable[str]) -> tuple[int, ...]:
    """Return the atomic number of each element."""
    try:
        return tuple(_NUMBERS[symbol] for symbol in symbols)
    except KeyError as error:
        raise ValueError(f"There is no element {error}.") from None


def valences_of(symbols: Sequence[str]) -> np.ndarray:
    """Return the valence of each atom, or raise `ValueError` where it is unknown."""
    unknown = sorted(set(symbols) - set(VALENCES))
    if unknown:
        raise ValueError(
            f"Only {', '.join(VALENCES)} have one valence, but got "
            f"{', '.join(unknown)}: use `perceive`."
        )
    return np.array([VALENCES[symbol] for symbol in symbols], int)


@check_arguments
def symbols_of(atomic_numbers: Sequence[int] | np.ndarray) -> tuple[str, ...]:
    """Return the symbol of each atomic number."""
    numbers = [int(number) for number in atomic_numbers]
    for number in numbers:
        if not 1 <= number <= len(SYMBOLS):
            raise ValueError(f"There is no element of atomic number {number}.")
    return tuple(SYMBOLS[number - 1] for number in numbers)


@check_arguments
def formula(symbols: Sequence[str]) -> str:
    """Return the formula in Hill's order, such as C5H8O: C, H, then by the alphabet."""
    counts = collections.Counter(symbols)
    order = ("C", "H") if "C" in counts else ()
    kinds = sorted(counts, key=lambda kind: (kind not in order, kind))
    return "".join(
        f"{kind}{counts[kind] if counts[kind] > 1 else ''}" for kind in kinds
    )


@check_arguments
def atoms_of(formula: str) -> tuple[str, ...]:
    """Return the elements in a formula such as C5H8O, hydrogens last."""
    parts = re.findall(r"([A-Z][a-z]?)([1-9][0-9]{0,3}|)", formula)
    whole = "".join(symbol + number for symbol, number in parts) == formula
    if not parts or not whole or any(symbol not in SYMBOLS for symbol, _ in parts):
        raise ValueError(f"A formula is like C5H8O, but got {formula!r}.")
    symbols = [symbol for symbol, number in parts for _ in range(int(number or 1))]
    return tuple(sorted(symbols, key=lambda s: (s == "H", SYMBOLS.index(s))))
