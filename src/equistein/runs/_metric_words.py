"""What metrics are called where people read them."""

import re

METRIC_WORDS = {
    "acceptance": "accepted proposals",
    "accuracy": "accuracy of the classes",
    "ais_effective_sample_size": "effective sample size of the estimate of log Z",
    "atom_stability": "atoms with the bonds of their valence",
    "batches": "batches trained within the time",
    "bits_per_dimension": "bits a dimension",
    "bits_per_dimension_gap": "bits a dimension between both ways to log Z, half of it",
    "bits_per_dimension_of_normals": "bits a dimension of the normal laws alone",
    "calibration_error": "expected calibration error",
    "closest_pair": "distance of the closest two particles (median)",
    "copy_error": "largest error of the weight of a copy",
    "coverage": "known molecules that were found",
    "distance_to_data": "distance to the nearest training point (median)",
    "distance_tv": "distance of pair distances (total variation)",
    "energy_distance": "distance of samples (energy distance)",
    "energy_distance_folded": "distance of samples, folded to one mode (energy "
    "distance)",
    "energy_distance_of_features": "distance of invariant features (energy distance)",
    "energy_distance_ratio": "energy distance over that of as many exact samples",
    "energy_w2": "distance of energies (Wasserstein-2)",
    "energy_w2_corrected": "distance of energies (Wasserstein-2), corrected by chains",
    "evaluations": "evaluations of the score",
    "evaluations_to_1000": "evaluations of the score for an effective 1,000 draws",
    "evaluations_to_mala": "evaluations of the score until as good as MALA",
    "expanded": "distance of all copies of samples (energy distance)",
    "expanded_ratio": "the same of all copies, over that of as many exact samples",
    "fcc_weight_gap": "difference of the starts in the weight of the fcc funnel, in "
    "joint errors",
    "frechet_distance": "distance of images (Fréchet)",
    "gap_after_100_steps": "log-likelihood still to go after 100 steps",
    "gap_in_errors": "difference of mean energies, in joint standard errors",
    "geometric_w2": "distance of clouds, turned onto each other (Wasserstein-2)",
    "heat_capacity_gap": "difference of the starts in heat capacity, in joint errors",
    "held_out_accuracy": "accuracy on held-out points",
    "held_out_denoising_loss": "loss of denoising held-out points",
    "held_out_energy_error": "error of energies of held-out frames (meV an atom)",
    "held_out_force_error": "error of forces of held-out frames (eV/Å)",
    "held_out_log_likelihood": "log-likelihood of held-out points (nats)",
    "inner_weight": "weight of the inner shell",
    "inner_weight_error": "error of the weight of the inner shell",
    "inner_sd": "width of the inner shell",
    "ksd": "kernel Stein discrepancy",
    "largest_error_of_a_share": "largest error of a state's fraction",
    "largest_mode_weight": "weight of the heaviest mode",
    "likelihood_gap": "log-likelihood below the best possible (nats)",
    "log_evidence": "log evidence (nats)",
    "log_likelihood": "log-likelihood of held-out points (nats)",
    "log_z_error": "error of log Z",
    "loss": "loss at the end",
    "lowest_energy": "lowest energy found",
    "mean_energy": "mean energy",
    "mean_log_likelihood": "mean log-likelihood of the samples (nats)",
    "median_energy": "median energy in the true potential",
    "molecule_stability": "molecules all of whose atoms have the bonds of their "
    "valence",
    "near_a_state": "samples near a state",
    "num_isomers": "different molecules",
    "num_novel": "different molecules that are not in the data",
    "outer_sd": "width of the outer shell",
    "peak_temperature": "temperature of the highest heat capacity",
    "precision": "samples that could be data (precision)",
    "recall": "data that could be samples (recall)",
    "rotated_accuracy": "accuracy on turned images",
    "round_trips": "round trips through the temperatures",
    "smallest_share": "fraction of the rarest state",
    "states_after_relaxation": "states found, once samples are relaxed",
    "states_found": "states found",
    "test_log_density": "mean log density of test data (nats)",
    "truth_covered": "true numbers inside intervals of 98 %",
    "upright_accuracy": "accuracy on upright images",
    "validity": "valid molecules",
    "w1_c_c": "distance of C–C distances (Wasserstein-1, Å)",
    "w1_c_o": "distance of C–O distances (Wasserstein-1, Å)",
    "w1_folded_x": "distance of x, folded to one mode (Wasserstein-1)",
    "w1_folded_y": "distance of y, folded to one mode (Wasserstein-1)",
    "w1_of_a_feature": "distance of an invariant feature (Wasserstein-1)",
    "w1_radius": "distance of the radii (Wasserstein-1)",
    "weights_worth": "samples that importance weights to the true energy are worth",
    "weight_error": "largest error of a mode's weight",
    "weights_within_tolerance": "runs whose weights of modes are within .03",
}


def in_words(metric: str) -> str:
    """Return what a metric is, for those who have not read what its name means.

    A number at the end, such as a size of the data, is kept: `likelihood_gap_100`.
    """
    if metric in METRIC_WORDS:
        return METRIC_WORDS[metric]
    sized = re.fullmatch(r"(.+)_(\d+)", metric)
    if sized and sized[1] in METRIC_WORDS:
        return f"{METRIC_WORDS[sized[1]]}, {sized[2]}"
    if metric.startswith("auroc_"):
        told = metric.removeprefix("auroc_").removeprefix("by_").replace("_", " ")
        return f"chance to tell data from others (AUROC, {told})"
    return metric.replace("_", " ")
