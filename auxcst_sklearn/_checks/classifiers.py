"""Classifiers of any library: their probabilities and their class frequencies."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples

from .data import is_frame, plain_array, sliceable
from .labels import as_labels, label_index, plain_labels, same_labels, shorten
from .nesting import walk

# What rounding may change: sums also in half precision, and no probability below zero by more.
SUM_ROUNDING, ROUNDING = 1e-3, 1e-6

# Parameters that change the class frequencies unless they have this value, or None.
REWEIGHTING: dict[str, Any] = {
    "class_weight": None,
    "scale_pos_weight": 1,
    "priors": None,
    "class_prior": None,
    "fit_prior": True,
}


def check_probability(values: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Probabilities of all classes (n, K), or of one (n,), as floats; others are an error."""
    p = plain_array(values, name).astype(np.float64, copy=False)
    if p.shape != shape:
        raise ValueError(
            f"{name} has shape {p.shape}; expected {shape}, a row for each sample"
            + (", and a column for each class that it has learnt." if len(shape) == 2 else ".")
        )
    if not p.size:
        raise ValueError(f"{name} has no rows; expected the probabilities of at least one sample.")
    is_right = (p >= -ROUNDING) & (p <= 1 + SUM_ROUNDING)  # NaN is not
    if p.ndim == 2:
        is_right = is_right.all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= SUM_ROUNDING)
    if not is_right.all():
        raise ValueError(
            f"{name} has {np.count_nonzero(~is_right)} of {len(p)} rows such as "
            f"{shorten(np.atleast_1d(p[is_right.argmin()]))}; expected probabilities from 0 to 1 "
            "whose rows sum to 1, not logits, logarithms or percent."
        )
    return p


def check_frequencies(values: Any, n_classes: int, name: str) -> NDArray[np.float64]:
    """Frequencies of all classes as an array; others than from 0 on with the sum 1 are an error."""
    share = plain_array(values, name).astype(np.float64)
    if share.shape != (n_classes,) or not (share >= 0).all() or abs(share.sum() - 1) > 1e-6:
        raise ValueError(
            f"{name}={share.tolist()}; expected {n_classes} frequencies of classes that are not "
            "negative and sum to 1."
        )
    return share


def probabilities(classifier: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Checked probabilities (n, K) of a fitted classifier, 0 for classes that it does not have."""
    X = sliceable(X)
    labels, returned = classifier.classes_, classifier.predict_proba(X)
    same = isinstance(labels, np.ndarray) and np.array_equal(labels, classes)  # no need to check
    labels = labels if same else as_labels(labels, "classes_")
    name = f"predict_proba of {type(classifier).__name__}"  # its repr takes longer than a row
    p = check_probability(returned, name, (_num_samples(X), len(labels)))
    if is_frame(returned) and same_labels(columns := plain_labels(list(returned.columns)), labels):
        p = p[:, label_index(labels, columns, name="classes_")]  # matched by its labels
    if same:
        return p
    completed = np.zeros((len(p), len(classes)))
    completed[:, label_index(labels, classes, name="classes_")] = p
    return completed


def requesting_weights(estimator: Any) -> Any:
    """The estimator, whose `fit` requests weights if there are routers of metadata."""
    if get_config()["enable_metadata_routing"]:
        request = estimator.set_fit_request(sample_weight=True)._metadata_request
        for part in (request, *vars(request).values()):
            if hasattr(part, "owner"):  # a reference back, which skops follows without end
                part.owner = type(estimator).__name__
    return estimator


def reweighting(model: Any) -> str | None:
    """Why probabilities of a fitted model may not stand for the class frequencies of its rows."""
    if isinstance(model, CalibratedClassifierCV) and model.method != "temperature":
        return None  # which moves them back
    for part in walk(model):
        if isinstance(part, FrozenEstimator):
            return f"{part!r} was fitted to other rows"
        of_part = part.get_params(deep=False) if hasattr(part, "get_params") else {}
        for name, value in of_part.items():
            is_set = name in REWEIGHTING and value is not None
            if is_set and not np.array_equal(value, REWEIGHTING[name]):
                return f"{name}={value!r} of {type(part).__name__} changes them"
    return None


def weights_elsewhere(has_weights: bool, fit_params: Collection[str]) -> str | None:
    """What makes the weights of a classifier others than those given, by the names it gets."""
    names = [name for name in fit_params if name.endswith("sample_weight")]
    if names == ["sample_weight"] * has_weights:
        return None
    return f"{names[0]} changes them" if names else "sample_weight does not reach the classifier"
