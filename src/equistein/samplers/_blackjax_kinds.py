"""Which algorithms of BlackJAX move independent chains, and why others do not."""

from typing import Any, NamedTuple


class Kind(NamedTuple):
    """How BlackJAX's functions for one algorithm are called."""

    building: tuple[str, ...]
    running: tuple[str, ...]
    needed: str | None = None
    is_dynamic: bool = False
    is_microcanonical: bool = False


_BUILT = ("integrator", "divergence_threshold")
_COUNT = ("integration_steps_params",)
KINDS = {  # by name in BlackJAX; an algorithm with a state of its own cannot be here
    "hmc": Kind(
        (*_BUILT, "build_proposal"), ("num_integration_steps",), "num_integration_steps"
    ),
    "mhmc": Kind(_BUILT, ("num_integration_steps",), "num_integration_steps"),
    "nuts": Kind(_BUILT, ("max_num_doublings",)),
    "dhmc": Kind((*_BUILT, "integration_steps_fn"), _COUNT, is_dynamic=True),
    "dmhmc": Kind((*_BUILT, "integration_steps_fn"), _COUNT, is_dynamic=True),
    "adjusted_mclmc": Kind(
        _BUILT, (*_COUNT, "L_proposal_factor"), is_microcanonical=True
    ),
    "adjusted_mclmc_dynamic": Kind(
        (*_BUILT, "integration_steps_fn"), (*_COUNT, "L_proposal_factor"),
        is_dynamic=True, is_microcanonical=True,
    ),
}  # fmt: skip
_REFUSED = {
    "mclmc sgld sghmc sgnht csgld": "its steps are not accepted or rejected, so they "
    "leave another density invariant than the one given; adjusted_mclmc is exact",
    "ghmc": "it keeps its momentum from step to step, which tempering and resampling "
    "would tear from its point",
    "mala barker": "it takes one step a move, as es.MALA does",
    "svgd": "its particles interact; it is es.SVGD",
    "tempered_smc adaptive_tempered_smc inner_kernel_tuning partial_posteriors_smc "
    "persistent_sampling_smc adaptive_persistent_sampling_smc pretuning nss nsswig":
        "it moves weighted particles, not chains; es.AnnealedSMC does, by chains",
    "pathfinder multipathfinder meanfield_vi fullrank_vi schrodinger_follmer":
        "it fits an approximation and does not leave the density invariant",
}  # fmt: skip


def name_of(algorithm: Any) -> str:
    """Return the name that BlackJAX has for an algorithm.

    Raises:
        ValueError: If it is none that moves independent chains, with the reason.
        ImportError: If BlackJAX is not installed.
    """
    try:
        import blackjax
    except ImportError as error:
        raise ImportError(
            "from_blackjax needs BlackJAX: pip install 'equistein[bayes]'."
        ) from error

    name = next((n for n, one in vars(blackjax).items() if one is algorithm), None)
    if name in KINDS:
        return name
    wanted = f"from_blackjax needs one of {', '.join(f'blackjax.{n}' for n in KINDS)}"
    if name is None:
        raise ValueError(
            f"{wanted}, itself and not what it returns for a density, but got "
            f"{algorithm!r}."
        )
    for names, reason in _REFUSED.items():
        if name in names.split():
            raise ValueError(f"{wanted}, but got blackjax.{name}: {reason}.")
    raise ValueError(
        f"{wanted}, but got blackjax.{name}: it is not moved by a step size and an "
        "inverse mass matrix alone."
    )
