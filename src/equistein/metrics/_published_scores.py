"""Scores of samplers as their papers give them."""

from typing import NamedTuple

from equistein._gate import finite_gate


class PublishedScore(NamedTuple):
    """What a paper says of a sampler.

    Attributes:
        method: The sampler.
        geometric_w2: The geometric Wasserstein-2 distance, if given.
        energy_w2: The Wasserstein-2 distance of the energies, if given.
        evaluations: The evaluations of the energy and its gradient, if known.
    """

    method: str
    geometric_w2: float | None
    energy_w2: float | None
    evaluations: float | None


_IDEM = "iDEM (ICML 2024)"
_ADJOINT = "Adjoint Sampling"
_ASBS = "ASBS"
_PDNS = "PDNS (ICLR 2026)"
_FLOW = "Flow Sampling (ICML 2026)"
_SGDS = "SGDS (NeurIPS 2025)"
_CHAINS = "plain MCMC, as published"
_SCORES = {
    "dw4": (
        PublishedScore(_IDEM, 0.70, 0.55, None),
        PublishedScore(_ADJOINT, 0.62, 0.55, None),
        PublishedScore(_ASBS, 0.43, 0.20, None),
        PublishedScore(_FLOW, 0.36, 0.11, None),
        PublishedScore(_CHAINS, None, 0.148, None),
    ),
    "lj13": (
        PublishedScore(_IDEM, 1.61, 30.78, 300e6),
        PublishedScore(_ADJOINT, 1.67, 2.40, 1e6),
        PublishedScore(_ASBS, 1.59, 1.99, None),
        PublishedScore(_PDNS, None, 1.01, None),
        PublishedScore(_FLOW, None, 0.97, None),
        PublishedScore(_SGDS, 1.56, 0.89, 370e3),
        PublishedScore(_CHAINS, None, 0.516, 300e6),
    ),
    "lj55": (
        PublishedScore(_IDEM, 4.69, 93.53, 120e6),
        PublishedScore(_ADJOINT, 4.04, 30.83, 1e6),
        PublishedScore(_ASBS, 4.00, 28.10, None),
        PublishedScore(_PDNS, None, 21.97, None),
        PublishedScore(_FLOW, None, 21.32, None),
        PublishedScore(_SGDS, 4.25, 32.17, 45e3),
        PublishedScore(_CHAINS, None, 0.872, 120e6),
    ),
}


@finite_gate
def published_scores(name: str) -> tuple[PublishedScore, ...]:
    """Return what papers say of their samplers of a system, in order of appearance.

    Each paper judged by its own script and its own reference, and the same sampler has
    other values in other papers (iDEM on LJ-13: 30.78, 39.92, 5.20): anchors, no more.

    Args:
        name: The name of the system: `dw4`, `lj13` or `lj55`; others have none.
    """
    return _SCORES.get(name, ())
