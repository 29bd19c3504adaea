"""What a user's X becomes: tables, images or numbers as the float32 rows of a network."""

from .arrays import ImageInputs, Inputs, NumberInputs
from .tables import TableInputs

__all__ = ["ImageInputs", "Inputs", "NumberInputs", "TableInputs"]
