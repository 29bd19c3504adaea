"""The members of a pool as parameters, as scikit-learn's ensembles have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from .pool_members import DEFAULT_MEMBERS, default_members

if TYPE_CHECKING:
    from typing_extensions import Self

DROP = "drop"


def is_dropped(member: Any) -> bool:
    """Whether a member is left out."""
    return isinstance(member, str) and member == DROP


class NamedMembers(BaseEstimator):
    """An estimator whose `estimators` are pairs of a name and a classifier."""

    estimators: Sequence[tuple[str, Any]] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the pool, and of its members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members and their parameters.

        Returns
        -------
        dict
            Names and values.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        for name, member in self._named_members() if deep else ():
            params[name] = member
            if hasattr(member, "get_params"):
                own = member.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in own.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the pool and of its members, or replace a member by its name.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : object
            The pool.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        if self.estimators is None and any(p.split("__")[0] in DEFAULT_MEMBERS for p in params):
            self.estimators = default_members()
        names = [name for name, _ in self._named_members()]
        for name in set(names) & set(params):
            self.estimators = [
                (n, params[name] if n == name else member) for n, member in self.estimators or []
            ]
            del params[name]
        super().set_params(**params)
        return self

    def _named_members(self) -> list[tuple[str, Any]]:
        """Names and classifiers, before they are checked."""
        if self.estimators is None:
            return default_members()
        given = self.estimators if isinstance(self.estimators, list) else []
        return [entry for entry in given if isinstance(entry, tuple) and len(entry) == 2]

    def _checked_members(self) -> list[tuple[str, Any]]:
        """Names and classifiers, without those that are left out."""
        members = self._named_members()
        if self.estimators is not None and len(members) < len(self.estimators):
            raise ValueError(
                f"estimators={self.estimators!r} must be a list of pairs of a name and a "
                "classifier."
            )
        names = [name for name, _ in members]
        taken = set(super().get_params(deep=False))
        for name in names:
            if not isinstance(name, str) or "__" in name or name in taken or names.count(name) > 1:
                raise ValueError(
                    f"estimators has the names {names}; expected different strings without '__', "
                    "and no names of parameters of the pool."
                )
        members = [(name, member) for name, member in members if not is_dropped(member)]
        for name, member in members:
            if not (hasattr(member, "fit") and hasattr(member, "predict_proba")):
                raise TypeError(
                    f"The member {name!r} is {member!r}, which has no predict_proba; expected a "
                    "classifier that estimates probabilities, such as one in a "
                    "CalibratedClassifierCV."
                )
        if not members:
            raise ValueError("estimators names no member; expected one at least.")
        return members
