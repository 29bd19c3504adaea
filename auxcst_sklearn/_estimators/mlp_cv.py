"""CostSensitiveAuxMLPCV: the fully connected network with built-in choice of alpha."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator

from .._training.distributed import joined, processes
from .._training.training_set import TrainingSet
from ..costs._dispatch import numpy_arrays
from ..losses import Loss
from . import alpha_folds
from .mlp import CostSensitiveAuxMLP
from .parameters import ALPHA, check_each
from .path import as_seed, fit_together
from .streams import unchanged_on_error

if TYPE_CHECKING:
    from typing_extensions import Self

ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class CostSensitiveAuxMLPCV(CostSensitiveAuxMLP):
    """CostSensitiveAuxMLP with the alpha that has the least cost on held-out rows.

    The networks of all alphas are trained together; see :func:`auxcst_sklearn.alpha_path`. The
    chosen alpha has the least mean cost on held-out rows; of two with equal cost, the smaller one.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.0, 0.1, ..., 1.0)
        Weights of the auxiliary heads to choose from; each applies to all heads.
    depth : int, default=3
        Number of hidden layers H.
    width : int or array-like of shape (depth,), default=128
        Neurons of each hidden layer.
    cv : int, cross-validation generator or iterable, default=None
        None to choose by the rows that each network holds out anyway: the networks of all alphas
        are trained together, and those of the best alpha are kept. Otherwise alpha is chosen by
        cross-validation, before a fit on all rows: an int for the number of stratified folds, or
        any value accepted by :func:`sklearn.model_selection.check_cv`.
    loss : {"bayes_risk", "cross_entropy", "one_sided", "smooth_one_sided", "softmin", \
            "squared"} or Loss, default="bayes_risk"
        Loss of the output; see :mod:`auxcst_sklearn.losses`. With "bayes_risk" and "cross_entropy"
        the output learns class probabilities, and costs are used only in the decision; with the
        others it learns the costs. For per-sample costs "bayes_risk" adds a cost network of the
        same shape, which doubles the fit time. "one_sided" is the loss of the paper.
    aux_loss : str or Loss, default=None
        Loss of the auxiliary heads; None for the same as `loss`.
    activation : {"elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "tanh"}, default="silu"
        Activation of the hidden layers.
    dropout : float, default=0.15
        Probability of dropping a hidden neuron in training.
    standardize : bool or "auto", default="auto"
        Whether to centre and scale the inputs, as learnt from the training set. "auto" leaves
        features of order one, and sparse ones, unchanged; the others get a common scale if they
        seem to have a common unit, as pixels do, and otherwise one scale each, as with True.
        Columns with outliers are scaled by their quartiles, and clipped softly.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, \
            default="from_dtype"
        Categorical columns, as a mask, positions or names. "from_dtype" selects the categorical and
        string columns of a DataFrame, and none of an array. Categories that are rare or not in the
        training set are treated as one level. A missing value in any column is NaN or None: the
        network gets the median and an indicator instead.
    n_bins : int, default=16
        Number of quantile bins of the piecewise linear encoding of numbers; 0 for none. Columns
        that are far from normal are encoded. Every second network uses the encoding in addition to
        the numbers. Sparse rows and pixels are not encoded, and a bin holds at least 100 rows.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), default=None
        Cost of each prediction (column) for each true class (row), in any currency; rows and
        columns follow `classes_`; those of a DataFrame are matched by label. Pass per-sample costs
        to `fit` instead. Without any costs every mistake costs 1.
    classes : array-like of shape (n_classes,), default=None
        All labels, sorted, for training sets that may lack one. None for the labels in `y`, or the
        labels of a DataFrame of costs.
    n_networks : int, default=5
        Number of networks, which are trained side by side as one stack; estimates and probabilities
        are their means. Each holds out a different fold of the rows for early stopping, and all
        folds together give the temperature. 1 for a single network.
    max_epochs : int, default=100
        Maximum number of passes over the training set; without early stopping, the exact number.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto" is a 32nd of the training set, at least 16 and at most 128.
    learning_rate : float, default=2e-3
        Learning rate of the optimizer; with a schedule, its maximum.
    schedule : {"constant", "one_cycle"}, default="constant"
        How the learning rate changes over `max_epochs`: not at all, or up during the first tenth
        and then down to zero, along cosines. `partial_fit` keeps it constant.
    averaging : float, default=5.0
        Horizon, in epochs, of the exponential average of the weights, which replaces a schedule:
        training can stop after any epoch. 0 for the weights of the last step. `partial_fit` always
        uses the weights of the last step.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``.
    early_stopping : bool, default=True
        Whether to hold out rows, and keep the weights of the best epoch: the one with the least
        held-out loss at its best temperature, or, for losses without class probabilities, with the
        least held-out mean cost. With fewer than ten rows, none are held out.
    validation_fraction : float, default=0.2
        Fraction of the rows that each network holds out. Several networks hold out different folds:
        the rows are split into `n_networks` folds, or into 1 / `validation_fraction` if that is
        more.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    temperature : "auto" or float, default="auto"
        Divisor of the logits of the class probabilities; "auto" learns it from the held-out rows.
        Without held-out rows it is 1; losses without class probabilities have none.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ...; "auto" uses a CUDA GPU if there is one. A training
        set that fills more than half of the free GPU memory stays in host memory.
    precision : {"float32", "bf16"}, default="float32"
        Number format of the hidden layers' arithmetic; weights, heads and losses are float32.
        "bf16" is faster on processors with instructions for it, and slower on others.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints of the training, from which another call to `fit` with the same data
        and parameters resumes after a crash; the result is the same. "{fit}" in its name is
        replaced by a name for each fit: use it if a search, or ``cv``, fits several models. None
        for no checkpoints.
    checkpoint_every : int, default=1
        Number of epochs between checkpoints.
    random_state : int, RandomState instance or None, default=None
        Determines weights, shuffling, dropout and the held-out rows. Pass an int for the same
        network on every call.
    verbose : int or bool, default=0
        Whether to print a line per epoch, with the time left without early stopping.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch: schedules, checkpoints, gradient clipping ... They
        receive rows in the form of the net, so that scores by name (`EpochScoring`) do not work.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
    distributed : {"auto"} or False, default="auto"
        Within an initialised ``torch.distributed`` group of several processes, "auto" distributes
        the training: each process calls `fit` with the same, complete data, and computes its part
        of every mini-batch. False for a separate model in each process.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas to choose from, sorted.
    mean_cost_path_ : ndarray of shape (n_alphas, n_networks) or (n_alphas, n_folds)
        Mean cost of the predictions for held-out rows, in currency, weighted by `sample_weight`.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: the order of all cost columns.
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch: "epoch", "train_loss" (the total), "train_loss_hidden1" ...
        "train_loss_output" (each head's mean loss), "dur" (seconds), and with early stopping the
        same losses on the held-out rows as "valid_loss...", their mean cost, "valid_cost", and
        "valid_refinement", the loss at the best temperature. Numbers are means over the networks.
        Losses are in units of the mean cost above the smallest, "valid_cost" in currency.
    temperature_ : float
        Divisor of the logits of the class probabilities.
    net_ : skorch.NeuralNet
        The trained net; its torch module is ``net_.module_``, whose weights have the networks as
        first dimension if there are several.
    input_center_, input_scale_ : ndarray of shape (n_features,) or None
        Centre and divisor of each input; None for unscaled inputs.
    is_categorical_ : ndarray of shape (n_features,) or None
        Mask of the categorical columns; None if there are none.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had names that are all strings.

    See Also
    --------
    CostSensitiveAuxMLP : The network with a given alpha.
    alpha_path : The networks of several alphas.

    Notes
    -----
    In the mean over the folds, each fold is weighted by its number of rows, or by the sum of their
    weights. The minimum of the path is an optimistic estimate of the cost of the chosen network.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from auxcst_sklearn import CostSensitiveAuxMLPCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = CostSensitiveAuxMLPCV(
    ...     alphas=[0, 0.2, 1], width=16, cost_matrix=[[0, 1, 10], [1, 0, 10], [1, 1, 0]],
    ...     max_epochs=5, random_state=0)
    >>> model.fit(scale(X), y).mean_cost_path_.shape
    (3, 5)
    >>> model.alpha_ in model.alphas_
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **CostSensitiveAuxMLP._parameter_constraints,
        "alphas": ["array-like"],
        "cv": ["cv_object"],
    }
    del _parameter_constraints["alpha"], _parameter_constraints["warm_start"]

    # Another fit may choose another alpha, so there is nothing to continue from.
    warm_start = False

    def __init__(
        self,
        alphas: ArrayLike = ALPHAS,
        depth: int = 3,
        width: int | Sequence[int] = 128,
        *,
        cv: int | BaseCrossValidator | Iterable[Any] | None = None,
        loss: str | Loss = "bayes_risk",
        aux_loss: str | Loss | None = None,
        activation: str = "silu",
        dropout: float = 0.15,
        standardize: bool | Literal["auto"] = "auto",
        categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
        n_bins: int = 16,
        cost_matrix: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        n_networks: int = 5,
        max_epochs: int = 100,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 2e-3,
        schedule: Literal["constant", "one_cycle"] = "constant",
        averaging: float = 5.0,
        weight_decay: float = 1e-2,
        optimizer: str | type = "adamw",
        early_stopping: bool = True,
        validation_fraction: float = 0.2,
        patience: int = 10,
        temperature: float | Literal["auto"] = "auto",
        device: str = "auto",
        precision: Literal["float32", "bf16"] = "float32",
        checkpoint_dir: str | PathLike[str] | None = None,
        checkpoint_every: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
        callbacks: list[Any] | None = None,
        net_params: dict[str, Any] | None = None,
        distributed: Literal["auto", False] = "auto",
    ) -> None:
        self.alphas = alphas
        self.depth = depth
        self.width = width
        self.cv = cv
        self.loss = loss
        self.aux_loss = aux_loss
        self.activation = activation
        self.dropout = dropout
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.n_bins = n_bins
        self.cost_matrix = cost_matrix
        self.classes = classes
        self.n_networks = n_networks
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.averaging = averaging
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.temperature = temperature
        self.device = device
        self.precision = precision
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.net_params = net_params
        self.distributed = distributed

    @property
    def alpha(self) -> float:  # type: ignore[override]  # a parameter of the base
        """The alpha that was chosen."""
        return self.alpha_

    @property
    def partial_fit(self) -> Any:
        """Not available, because alpha is chosen on all rows at once."""
        raise AttributeError(
            "CostSensitiveAuxMLPCV has no partial_fit and prepare, because it chooses alpha by "
            "cross-validation; continue with CostSensitiveAuxMLP(alpha=alpha_) instead."
        )

    prepare = partial_fit

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        cost_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Choose alpha, and train the network.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training examples. Sparse rows are converted to dense one mini-batch at a time.
        y : array-like of shape (n_samples,)
            Labels: strings, integers or booleans.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), \
                or DataFrame, default=None
            Cost of each possible prediction for each sample, as in `CostSensitiveAuxMLP.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, in the loss and in the cost of held-out rows; non-negative.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples, for a `cv` that uses them, as GroupKFold does and an int does not,
            and for rows that the training holds out.
        X_val, y_val, cost_val, sample_weight_val : array-like, default=None
            A validation set, as in `CostSensitiveAuxMLP.fit`, which is also used to choose alpha;
            if `cv` is set, alpha is chosen by the folds only.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            As `CostSensitiveAuxMLP.fit`. A fitted estimator is then unchanged.
        """
        with joined(self.distributed):
            self._validate_params()
            self._keep_splits()
            with unchanged_on_error(self), numpy_arrays():
                self.alphas_ = self._check_alphas()
                # Rows of weight 0 are kept, because `cv` may refer to rows by position.
                data = self._validate_training_set(
                    X, y, cost, sample_weight, self.classes, False, groups
                )
                held_out = (X_val, y_val, cost_val, sample_weight_val)
                if self.cv is None:
                    data.warn_if_truth_is_not_cheapest(self.classes_, stacklevel=2)
                    self._choose(X, y, cost, sample_weight, groups, held_out)
                    self._warn_if_collapsed(data)
                    return self
                self._check_checkpoint_dir()
                cv = self._splits[1] if isinstance(self.cv, Iterator) else self.cv
                self._folds = alpha_folds.split(cv, X, y, data.groups)
                self._cross_validate(data)
                names = ("X_val", "y_val", "cost_val", "sample_weight_val")
                super().fit(X, y, cost, sample_weight, groups=groups, **dict(zip(names, held_out)))
                del self._folds
                return self

    def _choose(
        self, X: Any, y: Any, cost: Any, sample_weight: Any, groups: Any, held_out: tuple[Any, ...]
    ) -> None:
        """Keep the networks of the alpha with the least cost on their held-out rows."""
        if not self.early_stopping and held_out[0] is None:
            raise ValueError(
                "cv=None chooses alpha by rows that the networks hold out, but with "
                "early_stopping=False they hold out none. Set early_stopping=True, or cv=5."
            )
        # With checkpoints, None may become the seed of an earlier fit.
        keeps = self.random_state is None and self.checkpoint_dir is not None
        seed = None if keeps else as_seed(self.random_state)
        networks = (self._network(alpha=a, random_state=seed) for a in self.alphas_.tolist())
        models = [clone(network) for network in networks]  # no two share a callback
        trainings = fit_together(models, 1, X, y, cost, sample_weight, groups, held_out)
        self.mean_cost_path_ = np.full((len(models), self.n_networks), np.nan)
        found = [t.net.held_out_costs(t.held_out) for t in trainings if t.held_out is not None]
        found = processes().from_first("the choice of alpha", found)
        best = 0
        if found:
            self.mean_cost_path_ = np.stack([costs for costs, _ in found])
            self._path_weight = found[0][1]
            best = int((self.mean_cost_path_ @ self._path_weight).argmin())
        else:
            warnings.warn(
                "Fewer than ten rows: none are held out to choose alpha, so the smallest of "
                "alphas is used. Pass X_val and y_val, or more rows.",
                UserWarning,
                stacklevel=3,
            )
        self.alpha_ = float(self.alphas_[best])
        parameters = models[best].get_params(deep=False)
        for name, value in vars(models[best]).items():
            if name not in parameters:
                setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_splits" in state:  # an iterator has no pickle
            _, splits = state.pop("_splits")
            state["cv"] = splits if isinstance(self.cv, Iterator) else self.cv
        return state

    def _check_alphas(self) -> NDArray[np.float64]:
        try:
            alphas = np.asarray(self.alphas, dtype=np.float64)
        except (TypeError, ValueError):  # some are lists, or not numbers
            alphas = np.empty(0)
        if alphas.ndim != 1 or len(alphas) == 0:
            raise ValueError(
                f"alphas={self.alphas!r}; expected at least one number, in one dimension. Values "
                "that differ among the layers are for alpha_path."
            )
        alphas = np.unique(alphas)
        check_each(alphas.tolist(), name="alphas", interval=ALPHA)
        return alphas

    def _keep_splits(self) -> None:
        """Keep the splits of an iterator, which yields them once, for this fit and later ones."""
        iterator, _ = getattr(self, "_splits", (None, None))
        if isinstance(self.cv, Iterator) and iterator is not self.cv:
            self._splits = (self.cv, list(self.cv))

    def _check_checkpoint_dir(self) -> None:
        """Reject, before any training, one folder for the fits of all folds."""
        if self.checkpoint_dir is not None and "{fit}" not in fspath(self.checkpoint_dir):
            raise ValueError(
                f"checkpoint_dir={self.checkpoint_dir!r} is one folder, but cv={self.cv!r} fits "
                "several times; expected a name with '{fit}', which stands for each fit, as in "
                "'checkpoints/{fit}'."
            )

    def _determining_params(self) -> dict[str, Any]:
        """The splits themselves, because an iterator of them is different each time."""
        return {
            **super()._determining_params(),
            "cv": joblib.hash(self._folds),
            "alpha": self.alpha_,
        }

    def _cross_validate(self, data: TrainingSet) -> None:
        """Choose alpha by the folds."""
        # Matrices of the constructor are part of `data`, for the classes in their order.
        network = self._network(
            classes=self.classes_, cost_matrix=None, categorical_features=self.is_categorical_
        )
        found = alpha_folds.mean_costs(network, self.alphas_, data, self._folds, self.classes_)
        found = processes().from_first("the choice of alpha", found)
        self.mean_cost_path_, self._path_weight = found
        mean = np.average(self.mean_cost_path_, axis=1, weights=self._path_weight)
        self.alpha_ = float(self.alphas_[mean.argmin()])

    def _network(self, **changes: Any) -> CostSensitiveAuxMLP:
        parameters = self.get_params(deep=False)
        del parameters["alphas"], parameters["cv"]
        return CostSensitiveAuxMLP(**{**parameters, **changes})
