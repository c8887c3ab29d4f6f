"""What metrics are, as reports show them."""

from equistein.runs import Metric

_LOWER = {
    "calibration_error": "expected calibration error",
    "distance_to_data": "distance to the nearest training point (median)",
    "distance_tv": "distance of pair distances (total variation)",
    "energy_distance": "distance of samples (energy distance)",
    "energy_distance_folded": "distance of samples, folded to one mode (energy "
    "distance)",
    "energy_distance_ratio": "energy distance over that of as many exact samples",
    "energy_w2": "distance of energies (Wasserstein-2)",
    "energy_w2_corrected": "distance of energies (Wasserstein-2), corrected by chains",
    "evaluations_to_1000": "evaluations of the score for an effective 1,000 draws",
    "expanded": "distance of all copies of samples (energy distance)",
    "expanded_ratio": "the same of all copies, over that of as many exact samples",
    "frechet_distance": "distance of images (Fréchet)",
    "gap_after_100_steps": "log-likelihood still to go after 100 steps",
    "gap_in_errors": "difference of mean energies, in joint standard errors",
    "geometric_w2": "distance of clouds, superimposed (Wasserstein-2)",
    "inner_weight_error": "error of the weight of the inner shell",
    "ksd": "kernel Stein discrepancy",
    "w1_folded_x": "distance of x, folded to one mode (Wasserstein-1)",
    "w1_folded_y": "distance of y, folded to one mode (Wasserstein-1)",
    "w1_radius": "distance of the radii (Wasserstein-1)",
    "weight_error": "largest error of a mode's weight",
}
_HIGHER = {
    "accuracy": "accuracy of the classes",
    "auroc_noise_log_density": "noise distinguished from images by the log density "
    "(AUROC)",
    "molecule_stability": "molecules all of whose atoms have the bonds of their "
    "valence",
    "precision": "samples that could be data (precision)",
    "recall": "data that could be samples (recall)",
    "rotated_accuracy": "accuracy on turned images",
    "upright_accuracy": "accuracy on upright images",
    "validity": "valid molecules",
    "weights_within_tolerance": "runs whose weights of modes are within .03",
}
_AS_IT_IS = {
    "acceptance": "accepted proposals",
    "batches": "batches trained within the time",
    "evaluations": "evaluations of the score",
    "inner_sd": "width of the inner shell",
    "inner_weight": "weight of the inner shell",
    "largest_error_of_a_fraction": "largest error of a state's fraction",
    "largest_mode_weight": "weight of the heaviest mode",
    "mean_energy": "mean energy",
    "median_energy": "median energy in the true potential",
    "near_a_state": "samples near a state",
    "num_isomers": "different molecules",
    "outer_sd": "width of the outer shell",
    "round_trips": "round trips through the temperatures",
    "smallest_fraction": "fraction of the rarest state",
    "states_after_relaxation": "states found, once samples are relaxed",
    "states_found": "states found",
    "weights_worth": "samples that importance weights to the true energy are worth",
}
METRICS = {
    **{name: Metric(label, "lower") for name, label in _LOWER.items()},
    **{name: Metric(label, "higher") for name, label in _HIGHER.items()},
    **{name: Metric(label) for name, label in _AS_IT_IS.items()},
    "likelihood_gap": Metric("log-likelihood below the best possible", "lower", "nats"),
    "log_evidence": Metric("log evidence", unit="nats"),
    "log_likelihood": Metric("log-likelihood of held-out points", unit="nats"),
    "log_z_error": Metric("error of log Z", "zero"),
    "mean_log_likelihood": Metric("mean log-likelihood of the samples", unit="nats"),
    "w1_c_c": Metric("distance of C–C distances (Wasserstein-1)", "lower", "Å"),
    "w1_c_o": Metric("distance of C–O distances (Wasserstein-1)", "lower", "Å"),
}
"""What the metrics are that reports show by a phrase."""
