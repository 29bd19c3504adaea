"""First layers of networks on tables: scales, ranges, missing values, categories and bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._layers import Generators


class Standardize(nn.Module):
    """Centre and scale every input: `center` is mapped to 0, and a difference of `scale` to 1."""

    def __init__(self, center: ArrayLike, scale: ArrayLike) -> None:
        super().__init__()
        self.center = nn.Buffer(torch.as_tensor(center, dtype=torch.float32))
        self.factor = nn.Buffer(1 / torch.as_tensor(scale, dtype=torch.float32))

    def set(self, center: ArrayLike, scale: ArrayLike) -> None:
        """Change centre and scale."""
        self.center.copy_(torch.as_tensor(center))
        self.factor.copy_(1 / torch.as_tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        """Scaled inputs."""
        return (x - self.center) * self.factor


class UnitRange(Standardize):
    """Map each input from its range, [low, low + 1] if that is a point, to [0, 1]; clip others."""

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        low, span = torch.as_tensor(low), torch.as_tensor(high) - torch.as_tensor(low)
        super().__init__(low, torch.where(span > 0, span, 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs in [0, 1]."""
        return super().forward(x).clamp(0, 1)


class PiecewiseLinear(Standardize):
    """For each bin, the fraction below the input: 0, 1, or in between for inputs inside the bin.

    `columns` contains the input of each bin, `center` its lower bound, and `scale` its width. After
    Y. Gorishniy, I. Rubachev, A. Babenko, "On Embeddings for Numerical Features in Tabular Deep
    Learning", NeurIPS 2022, section 3.2.
    """

    def __init__(self, columns: ArrayLike, center: ArrayLike, scale: ArrayLike) -> None:
        super().__init__(center, scale)
        self.columns = nn.Buffer(torch.as_tensor(columns, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        """Fractions (..., n_bins) for inputs (..., n_inputs)."""
        return super().forward(x.index_select(-1, self.columns)).clamp(0, 1)


class FeatureInput(nn.Module):
    """Encode numbers, missing values, categories and bins as float inputs of several networks.

    Inputs are float32, with NaN for missing values, and codes -1, 0, 1 ... in categorical columns.
    Outputs are the `numbers`, with `fill` for missing ones; an indicator for each of the columns
    `gaps`, which may have missing values; one for each level of the columns `few`; encodings of
    `bins`, which count the numbers from 0; and embedding vectors for the columns `many`. `few` and
    `many` are pairs of a column and, for each code, whether it has its own level. Other codes, of
    rare and unknown categories, have no indicator, and share a vector, which starts at zero. The
    networks differ in their vectors, drawn from the `generators`, and in whether they see the bins.
    """

    def __init__(
        self,
        fill: Sequence[float],
        numbers: Sequence[int],
        *,
        gaps: Sequence[int] = (),
        few: Sequence[tuple[int, Sequence[bool]]] = (),
        many: Sequence[tuple[int, Sequence[bool]]] = (),
        bins: PiecewiseLinear | None = None,
        generators: Generators = (None,),
    ) -> None:
        super().__init__()
        own = [(column, code) for column, kept in few for code, keep in enumerate(kept) if keep]
        self.numbers, self.gaps = _positions(numbers), _positions(gaps)
        self.few_columns = _positions([column for column, _ in own])
        self.many_columns = _positions([column for column, _ in many])
        self.fill = nn.Buffer(torch.tensor(fill, dtype=torch.float32))
        self.few_codes = nn.Buffer(torch.tensor([code for _, code in own], dtype=torch.float32))
        # One table of vectors for all columns, so that a batch needs one look-up.
        levels = [torch.tensor([False, *kept]) for _, kept in many]
        starts, rows, n_rows = [], [torch.zeros(0, dtype=torch.int64)], 0
        for kept in levels:  # for codes from -1 on; the first row is for rare levels
            starts.append(sum(map(len, rows)))
            rows.append(n_rows + kept * kept.cumsum(0))
            n_rows += 1 + int(kept.sum())
        self.starts, self.row_of_code = _positions(starts), nn.Buffer(torch.cat(rows))
        self.table: nn.Parameter | None = None
        if levels:
            # Longer vectors, and larger initial ones, memorise single rows.
            dimension = round(max(int(kept.sum()) for kept in levels) ** 0.25)
            size: Any = (n_rows, dimension)
            drawn = [torch.randn(size, generator=g, dtype=torch.float32) for g in generators]
            table = 0.3 * torch.stack(drawn)
            table[:, self.row_of_code[self.starts]] = 0
            self.table = nn.Parameter(table)
        self.bins = bins
        n = len(generators)  # every third network has bins; a single network also has them
        sees_bins = (torch.arange(n) % 3 == min(n - 1, 1)) & (bins is not None)
        self.sees_bins = nn.Buffer(sees_bins.float().view(-1, 1, 1))

    def set_fill(self, fill: ArrayLike) -> None:
        """Change the values that replace missing ones, given for every column."""
        self.fill.copy_(torch.as_tensor(fill)[self.numbers])

    @property
    def indicators(self) -> slice:
        """Which outputs are indicators of levels."""
        start = len(self.numbers) + len(self.gaps)
        return slice(start, start + len(self.few_columns))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        n = len(self.numbers) + len(self.gaps) + len(self.few_columns)
        if self.bins is not None:
            n += len(self.bins.columns)
        return n if self.table is None else n + len(self.many_columns) * self.table.shape[-1]

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (n_networks, n_samples, n_outputs) for inputs (n_networks or 1, n_samples, ...).

        What is not learnt, without bins, is the same for all networks, and computed once.
        """
        known = self._known(x)
        if self.bins is None and self.table is None:
            return known
        n = len(self.sees_bins if self.table is None else self.table)
        parts = [known.expand(n, -1, -1)]
        if self.bins is not None:
            parts.append(self.bins(known) * self.sees_bins)
        if self.table is not None:
            first_row = self.table.shape[1] * torch.arange(n, device=x.device).view(n, 1, 1)
            code = torch.nan_to_num(x.index_select(-1, self.many_columns), nan=-1.0)
            rows = self.row_of_code[self.starts + 1 + code.long()] + first_row
            parts.append(F.embedding(rows, self.table.flatten(0, 1)).flatten(-2))
        return torch.cat(parts, dim=-1)

    def _known(self, x: Tensor) -> Tensor:
        """The outputs that are not learnt, but for bins."""
        numbers = x.index_select(-1, self.numbers)
        parts = [numbers]
        if len(self.gaps):
            parts = [torch.where(torch.isnan(numbers), self.fill, numbers)]
            parts.append(torch.isnan(x.index_select(-1, self.gaps)).to(x.dtype))
        if len(self.few_columns):
            parts.append((x.index_select(-1, self.few_columns) == self.few_codes).to(x.dtype))
        return torch.cat(parts, dim=-1) if len(parts) > 1 else numbers


def _positions(values: Sequence[int]) -> nn.Buffer:
    return nn.Buffer(torch.tensor(values, dtype=torch.int64))
