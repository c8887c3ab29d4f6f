"""A learned density as an estimator of scikit-learn, which must be installed."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.groups import AbstractGroup, parse_group, PointCloud
from equistein.models import AbstractSettings, ContrastiveSettings, for_data

try:
    from sklearn.base import BaseEstimator, DensityMixin
    from sklearn.utils import check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError(
        "This needs scikit-learn of at least version 1.6: "
        "pip install 'equistein[sklearn]'."
    ) from None


class EnergyModel(DensityMixin, BaseEstimator):
    r"""An invariant density of rows, and a classifier if there are classes.

    The model of `es.models.for_data`: an energy $E$ with $p(x) = e^{-E(x)} / Z$, or
    with classes $p(x, y)$, which gives both $p(x)$ and $p(y | x)$.

    Args:
        group: The symmetry: a group, or its name as in `equistein fit`: cyclic:4.
        shape: The shape of a point, if it is not a row: (atom, 3) or (28, 28, 1).
        species: For a point cloud, a label for each particle; by default all alike.
        num_epochs: The number of epochs; by default chosen by the size of the data.
        settings: All settings of training, instead of `num_epochs`, such as
            `es.models.ContrastiveSettings(widths=(64, 64))`.
        ais_steps: The temperatures of the estimate of log Z; 0 for none, and
            `score_samples` up to log Z.
        random_state: An integer, a RandomState, or None, as in scikit-learn.

    Attributes:
        fitted_: The `es.Fitted`.
        classes_: The classes, where it was fitted with some.
        log_normalizer_: The estimate of log Z with its standard error, or None.
        n_features_in_: The number of columns.
    """

    def __init__(
        self,
        group: str | AbstractGroup = "trivial",
        *,
        shape: tuple[int, ...] | None = None,
        species: tuple[int, ...] | None = None,
        num_epochs: int | None = None,
        settings: AbstractSettings | None = None,
        ais_steps: int = 500,
        random_state: Any = None,
    ):
        self.group = group
        self.shape = shape
        self.species = species
        self.num_epochs = num_epochs
        self.settings = settings
        self.ais_steps = ais_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "EnergyModel":
        """Learn the density of rows, and their classes if given, words or numbers."""
        labels = None
        if y is None:
            X = validate_data(self, X, ensure_min_samples=2)
            self.__dict__.pop("classes_", None)
        else:
            X, y = validate_data(self, X, y, ensure_min_samples=2)
            check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"`y` holds the class {self.classes_[0]!r} alone: give two, or "
                    "leave `y` out."
                )
        fit_key, score_key, model_key = jr.split(self._key(), 3)
        points = self._points(X)
        settings = self.settings or ContrastiveSettings(
            num_epochs=self.num_epochs, batch_size=min(64, len(points))
        )
        group = self._group(points.shape[1:])
        model = for_data(model_key, group, points, labels, settings=settings)
        self.fitted_ = model.fit(fit_key, points, labels)
        self.log_normalizer_ = None
        if self.ais_steps:
            self.log_normalizer_ = self.fitted_.log_normalizer(
                score_key, num_steps=self.ais_steps
            )
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log densities of rows in nats, up to log Z without `ais_steps`."""
        points = self._check(X)
        if self.log_normalizer_ is None:
            return np.asarray(jax.vmap(self.fitted_.log_density)(points))
        return np.asarray(self.fitted_.log_likelihood(points, self.log_normalizer_))

    def score(self, X: Any, y: Any = None) -> float:  # type: ignore[override]
        """Return the mean log density of the rows, or with classes the accuracy."""
        if y is not None and hasattr(self, "classes_"):
            return float(np.mean(self.predict(X) == column_or_1d(y)))
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw new rows, by another `random_state` than the estimator's if given."""
        check_is_fitted(self)
        points = self.fitted_.sample(self._key(random_state), n_samples)
        return np.asarray(points).reshape(n_samples, -1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each row, if fitted with classes."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, (row, class), in the order of `classes_`."""
        points, energy = self._check(X), self.fitted_.energy
        return np.asarray(jax.nn.softmax(jax.vmap(energy.logits)(points)))

    def _check(self, X: Any) -> jax.Array:
        check_is_fitted(self)
        return self._points(np.asarray(validate_data(self, X, reset=False)))

    def _points(self, X: np.ndarray) -> jax.Array:
        shape = X.shape[1:] if self.shape is None else tuple(self.shape)
        if int(np.prod(shape)) != X.shape[1]:
            raise ValueError(
                f"Rows of {X.shape[1]} numbers are no points of `shape` {shape}."
            )
        return jnp.asarray(X.reshape(len(X), *shape), float)

    def _group(self, shape: tuple[int, ...]) -> AbstractGroup:
        if not isinstance(self.group, str):
            return self.group
        if self.group != "point-cloud":
            return parse_group(self.group)
        if len(shape) != 2:
            raise ValueError(
                "A point cloud needs the `shape` of a point, (particle, dimension)."
            )
        return PointCloud(self.species or (0,) * shape[0], shape[1])

    def _key(self, random_state: Any = None) -> jax.Array:
        state = self.random_state if random_state is None else random_state
        return jr.key(check_random_state(state).randint(2**31 - 1))
