"""The temperature of a classifier, from probabilities of held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _check_method_params

from .._checks.calls import warn
from .._checks.classifiers import probabilities
from .._checks.labels import shorten
from .._checks.nesting import chain
from .._training.geometric_mean import MANY_CLASSES
from .._training.group_folds import ShuffledGroups
from .._training.temperature import HEATS, best_temperature, log_clipped, log_loss_of
from ..costs._labels import columns_of
from ..costs._problem import Fold, Problem

# With fewer rows of each class on average, "auto" fits no classifier for a temperature.
FEWEST_ROWS_OF_CLASS = 10


def learns_by_default(classifier: Any, n_rows: int, n_classes: int) -> bool:
    """Whether "auto" learns a temperature: for many classes, unless a classifier has its own."""
    if n_classes < MANY_CLASSES or n_rows <= FEWEST_ROWS_OF_CLASS * n_classes:
        return False
    *_, last = chain(classifier, fitted=False)
    return not (hasattr(last, "predict_cost") or isinstance(last, CalibratedClassifierCV))


def warn_of_many_classes(calibration: str | None, n_classes: int) -> None:
    """Warn of many classes, for which some calibrations are not made."""
    if calibration in ("sigmoid", "isotonic") and n_classes > MANY_CLASSES:
        warn(
            f"calibration={calibration!r} calibrates each of {n_classes} classes alone, from few "
            "rows, so that expected costs are often worse than without; expected at most "
            f"{MANY_CLASSES} classes. Use calibration='temperature'."
        )


def folds_of(cv: Any, data: Problem, *, one: bool) -> list[Fold]:
    """The folds of `cv`: five if it is None, or with `one` only the first fold."""
    cls = StratifiedKFold if data.groups is None else ShuffledGroups
    splitter = cls(5, shuffle=True, random_state=0) if cv is None else cv
    with warnings.catch_warnings():  # Rare classes cannot be in every fold.
        warnings.simplefilter("ignore", UserWarning)
        splitter = check_cv(splitter, data.label, classifier=True)
        splits = splitter.split(data.X, data.label, data.groups)
        folds = list(islice(splits, 1)) if one and cv is None else list(splits)
    index = np.arange(len(data))  # scikit-learn also takes lists and masks
    return [(index[np.asarray(seen)], index[np.asarray(unseen)]) for seen, unseen in folds]


def calibrator(calibrated: CalibratedClassifierCV, cv: Any, data: Problem) -> Any:
    """scikit-learn's calibrator with the folds of `cv`; an error where it would be wrong.

    Without a word it scales probabilities of a class that a fold lacks, and it takes other numbers
    than 0 .. K-1 for positions of classes.
    """
    known = np.unique(data.labels[data.is_weighted])
    are_codes = isinstance(known[0], str) or np.array_equal(known, np.arange(len(known)))
    if calibrated.method == "temperature" and not are_codes:
        raise ValueError(
            "calibration='temperature' without predict_proba is scikit-learn's, which is wrong for "
            f"the labels {shorten(known)}; expected 0 .. K-1, or strings. Use y.astype(str), say."
        )
    folds = folds_of(5 if cv is None and data.groups is None else cv, data, one=False)
    for index in [index for fold in folds for index in fold]:
        weighted = index[data.is_weighted[index]]
        if len(missing := np.setdiff1d(known, data.labels[weighted])):
            raise ValueError(
                f"A fold for calibration lacks the classes {shorten(missing)}; expected all, with "
                "weight, in both parts of each fold. Shuffle, or make fewer folds."
            )
    return calibrated.set_params(cv=folds)


def unseen_probabilities(
    classifier: Any, data: Problem, folds: Iterable[Fold], fit_params: dict[str, Any]
) -> NDArray[np.float64]:
    """Probabilities (n, K) by classifiers that have not seen a row; NaN where none has.

    They are also NaN for rows of a class that the classifier was not fitted with.
    """
    labels, classes = data.labels, data.classes
    p = np.full((len(labels), len(classes)), np.nan)
    (X,) = indexable(data.X)  # some sparse formats have no rows to select
    for seen, unseen in folds:
        params = _check_method_params(X, fit_params, indices=seen)
        model = clone(classifier).fit(_safe_indexing(X, seen), labels[seen], **params)
        # A classifier cannot give the right class of such a row any probability, which would say
        # nothing about its temperature.
        index = unseen[np.isin(labels[unseen], labels[seen])]
        if len(index):
            p[index] = probabilities(model, _safe_indexing(X, index), classes)
    return p


def out_of_fold_temperature(p: NDArray[np.float64], data: Problem) -> float:
    """The temperature of least log loss of the rows with probabilities.

    A warning says so if the decision by expected cost costs more than the most probable class.
    """
    index = np.flatnonzero(np.isfinite(p).all(axis=1))
    if not len(index):
        raise ValueError(
            "There are no rows for calibration: the training rows of every fold lack the classes "
            "of its test rows. Shuffle, or pass other folds as cv."
        )
    known, logs = data.take(index), log_clipped(p[index])
    label, weight = known.label, known.weight
    losses = [log_loss_of(log_softmax(logs / t, axis=1), label, weight) for t in np.exp(HEATS)]
    # Rows of small weight are little evidence: Kish's effective number of rows.
    n_samples = len(index) if weight is None else weight.sum() ** 2 / (weight**2).sum()
    temperature = best_temperature(np.array(losses)[:, np.newaxis], n_samples)
    _warn_if_rule_costs_more(softmax(logs / temperature, axis=1), known)
    return temperature


def _warn_if_rule_costs_more(p: NDArray[np.float64], data: Problem) -> None:
    """Warn if decisions by expected cost are worse than the most probable class.

    The difference of the mean costs must exceed two paired standard errors.
    """
    of_class, weight = columns_of(data.classes, data.decisions), data.weight
    if of_class is None or len(p) < 2:  # the classes are not decisions
        return
    paid = data.paid(data.expected_cost(p).argmin(axis=1))
    most_probable = data.paid(of_class[p.argmax(axis=1)])
    difference = paid - most_probable
    # Both decisions are for the same rows, so the standard error is that of the paired differences.
    share = np.full(len(p), 1 / len(p)) if weight is None else weight / weight.sum()
    mean = share @ difference
    error = np.linalg.norm(share * (difference - mean))
    if mean > 2 * error and mean > 0:
        warn(
            f"On {len(p)} rows that the classifier has not seen, the decision by expected cost "
            f"costs {share @ paid:.4g} a row, the most probable class {share @ most_probable:.4g}: "
            "the probabilities are not good enough for these costs. Use another classifier, or "
            "calibration='temperature' with more rows; or decide by the classifier's own predict."
        )
