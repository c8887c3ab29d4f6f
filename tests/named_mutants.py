"""Changes of the code made by hand, which `mutants` tries before its random ones."""

NAMED = {  # what the change is about: package, file, before, after
    "score clipping": (
        "samplers", "samplers/_steps.py", "largest / jnp.maximum(norms, largest)",
        "largest / jnp.maximum(norms, 2 * largest)",
    ),
    "score clipping in SVGD": (
        "samplers", "samplers/_svgd.py",
        "scores = beta * clip_norms(scores, score_clip)", "scores = beta * scores",
    ),
    "repellers": (
        "samplers", "samplers/_svgd.py",
        "prepared = jax.tree.map(join, prepared, of_repellers[2])", "join(x, x)",
    ),
    "score clipping of repellers": (
        "samplers", "samplers/_svgd.py",
        "split_over_devices(self.mesh, _prepare, repellers, *settings)",
        "split_over_devices(self.mesh, _prepare, repellers, *settings[:-1], None)",
    ),
    "a log density that is not finite": (
        "samplers", "samplers/_scan.py",
        "finite & (~at_record | jnp.isfinite(info.log_density))", "finite",
    ),
    "a proposal whose density is infinite": (
        "samplers", "samplers/_metropolis.py", "finite = jnp.isfinite(log_ratio)",
        "finite = ~jnp.isnan(log_ratio)",
    ),
    "unlabelled points": (
        "training", "training/_objectives.py",
        "known = (labels >= 0)", "known = (labels >= -1)",
    ),
    "points of unknown energy": (
        "training", "training/_objectives.py",
        "known = jnp.isfinite(batch.labels)", "known = batch.labels == batch.labels[0]",
    ),
    "temperature of an energy": (
        "energies", "energies/_composed.py", "/ self.temperature",
        "* self.temperature",
    ),
    "degrees of freedom": (
        "targets", "metrics/_particle_systems.py", "(self.num_particles - 1)",
        "self.num_particles",
    ),
    "escaping": ("runs", "runs/_report.py", "autoescape=True", "autoescape=False"),
    "limit of readers": (
        "readers", "_limits.py", "if needed > most:", "if needed > 4 * most:",
    ),
    "grid of shells": ("targets", "targets/_shells.py", "(-9.0, 9.0,", "(-2.0, 2.0,"),
    "grid of bins": (
        "metrics", "metrics/_distances.py", "num_bins + 1)", "num_bins)",
    ),
}  # fmt: skip
