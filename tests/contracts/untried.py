"""Public names that no wrong argument is tried on, each with the reason."""

_RESULTS = "what others make and hand back"
_FILES = "a reader or writer: tests/fuzz.py tries it on files"
_PARTS = "a piece of another, which is tried"
_EXTRA = "of an extra that may not be installed: its own tests refuse"
_NONE = "takes no arguments"
_FORCES = "its rows are those of data: test_objectives_by_hand and fits refuse"
_LONG = "takes a trained model, or trains one: tests of the command line refuse"
_CHECKS = "a check itself, or tried by its own tests"

UNTRIED = {
    "groups": {
        _RESULTS: {"RigidPermutation", "SignedPermutation"},
        _NONE: {"Trivial"},
    },
    "features": {
        _NONE: {"Coordinates"},
        _PARTS: {"jacobian", "pair_differences", "smooth_norm"},
    },
    "kernels": {
        _RESULTS: {"Prepared"},
        _PARTS: {"closed_form", "measured_bandwidth", "squared_discrepancy"},
    },
    "targets": {_RESULTS: {"Minima"}},
    "energies": {_RESULTS: {"Evaluation"}, _CHECKS: {"check_one_density", "fixed"}},
    "metrics": {
        _RESULTS: {
            "GeometricWasserstein", "LogNormalizer", "PrecisionAndRecall",
            "PublishedScore", "ReferenceQuality", "Reliability", "Score", "Scores",
            "Weighted",
        },
        _CHECKS: {"score_against", "projected_gradient_attack"},
    },
    "bridges": {_RESULTS: {"EnergyForces"}, _EXTRA: {"from_ase", "to_ase"}},
    "objectives": {
        _NONE: {
            "CrossEntropy", "NoiseConditionalScoreMatching", "ScoreMatching",
            "SquaredError",
        },
        _FORCES: {"ForceMatching"},
        _RESULTS: {"Sum"},
    },
    "negatives": {},
    "samplers": {
        _RESULTS: {
            "ChainInfo", "ChainParameters", "ChainState", "LangevinInfo",
            "LangevinState", "PathWalker", "SMCInfo",
            "SMCState", "SVGDInfo", "SVGDState", "Samples", "SamplingAlgorithm",
            "TemperingInfo", "TemperingState", "RunInterrupted",
        },
        _FILES: {"load_samples"},
        _PARTS: {
            "SplitRows", "advance", "canonical_optimizer", "clipped",
            "collect_warnings", "everywhere",
            "on_mesh", "suppress_warnings", "warn_of_samples",
        },
        _EXTRA: {"BlackJAXChains", "from_blackjax"},
    },
    "networks": {
        _PARTS: {"FieldNorm", "plain_twin"},
        "as slow to make as to run: SteerableCNN and SteerableConv stand for it": {
            "SteerableUNet"
        },
    },
    "diffusion": {
        _NONE: {"NoiseConditionalScoreMatching"},
        _PARTS: {"FormulaGenerator", "denoising_loss"},
        _LONG: {"MaskedNoiseEnergy", "MixtureNoiseEnergy"},
    },
    "models": {
        _RESULTS: {"Dataset", "Judgement", "Model", "Shapes"},
        "settings, whose fields tests/units/models refuse one by one": {
            "ContrastiveSettings", "DenoisingSettings", "ImageSettings", "Problem",
        },
        _FILES: {"load", "read_dataset"},
        _NONE: {"pretrained_names"},
        _PARTS: {
            "CoolingStep", "descent", "diffusion_steps", "features_of", "kernel_for",
            "network_of", "objective_for", "usual_network",
        },
        _EXTRA: {
            "known_graphs", "molecule_numbers", "shape_numbers", "shape_panels",
            "shapes_of",
        },
        _LONG: {
            "contrastive_model", "denoising_model", "for_dataset", "for_formulas",
            "formulas_of", "graph_energy_for", "image_bits", "image_energy_for",
            "image_invariants", "image_model", "judge", "masked_energy_for",
            "network_for", "of_formula", "scores", "fit_text", "write_fit_report",
        },
    },
    "training": {
        _NONE: {"CrossEntropy", "ScoreMatching", "SquaredError"},
        _FORCES: {"ForceMatching"},
        _RESULTS: {"Batch", "Fitted", "PersistentState", "Sum"},
        _FILES: {"TensorBoard", "check_on_disk", "load_tree"},
        "sources and settings of a fit: tests/units/training refuse": {
            "InMemory", "OnDisk", "Optimization", "Stream",
        },
        _PARTS: {
            "Trainer", "checked_batch", "displacement", "divergence", "paired",
            "parts_of", "score_norm", "spread_rows",
        },
    },
    "posteriors": {
        _NONE: {"Positive", "Real", "Simplex"},
        _RESULTS: {"Coordinates", "Pilot", "PosteriorSamples"},
        _PARTS: {"StandardizedDensity", "WideReference"},
        _EXTRA: {"from_numpyro", "plot", "relabel", "to_arviz"},
        "its check draws a start and a density: tests/units/posteriors refuse": {
            "Parameters", "Posterior",
        },
    },
    "molecules": {
        _RESULTS: {
            "Geometry", "Molecule", "Perceived", "Relaxed", "Scores", "Strain",
        },
        _FILES: {"is_molecules", "read_molecules", "read_xyz", "write_xyz"},
        _NONE: {"has_rdkit"},
        _EXTRA: {
            "ase", "bonds_of", "drawings", "embed", "from_atoms", "from_bonds",
            "geometry", "graph_smiles", "isomers", "perceive", "score_molecules",
            "strain",
        },
    },
    "data": {
        _RESULTS: {"LabeledImages", "QM9Isomers", "Table"},
        _NONE: {"cache_folder"},
        _FILES: {
            "cached_array", "has_labels", "is_table", "map_points", "published_clouds",
            "image_classes", "read_idx", "read_image_folder", "read_labels",
            "read_points", "read_table", "write_image_folder", "write_table",
        },
        "downloads, if it is allowed to": {"labeled_images", "qm9_isomers"},
        _PARTS: {"as_labeled", "as_particles", "class_names"},
    },
}  # fmt: skip
