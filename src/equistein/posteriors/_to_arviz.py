"""Draws of a posterior for ArviZ."""

from typing import Any

import numpy as np

from equistein._gate import gate
from equistein.posteriors._posterior_samples import check_samples, PosteriorSamples
from equistein.posteriors._relabel import relabel

_ABOUT = {
    "posterior": "label-invariant: parameters without labels as they are, of those "
    "with labels the order statistics along them; R-hat and ESS are of these",
    "relabelled": "parameters with labels, each draw moved by a swap to the copy "
    "nearest to one reference: for reading only",
}


@gate
def to_arviz(samples: PosteriorSamples) -> Any:
    """Return the draws as ArviZ holds them, a `DataTree` with these groups.

    `posterior` has what does not depend on the labels, so that the R-hat and the ESS of
    `arviz_stats.summary` mean something; `sample_stats` the log density, as `lp`;
    `relabelled` the parameters that have labels, relabelled, for reading.

    Args:
        samples: What `posterior.run` returned.

    Raises:
        ValueError: If the samples are not those of a posterior.
        ImportError: If ArviZ is not installed: `pip install equistein[bayes]`.
    """
    check_samples("to_arviz", samples)
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError(
            "`to_arviz` needs ArviZ: pip install equistein[bayes]"
        ) from error
    readable = relabel(samples).named
    found = samples.invariants()
    lp = found.pop("log_density")
    groups = {"posterior": found, "sample_stats": {"lp": lp}}
    labelled = samples.posterior.parameters.exchangeable
    if labelled:
        groups["relabelled"] = {name: readable[name] for name in labelled}
    arrays = {
        group: {name: np.asarray(x) for name, x in values.items()}
        for group, values in groups.items()
    }
    about = {
        group: {"about": text} for group, text in _ABOUT.items() if group in groups
    }
    return from_dict(arrays, attrs=about | {"/": _evidence(samples)})


def _evidence(samples: PosteriorSamples) -> dict[str, float]:
    return {
        "log_evidence": samples.log_evidence,
        "log_evidence_error": samples.log_evidence_error,
        "evaluations": float(samples.evaluations),
    }
