"""What a user's X becomes: tables, images, numbers or arrays by name as rows of a network."""

from .arrays import ImageInputs, Inputs, NumberInputs
from .named import NamedInputs
from .tables import TableInputs

__all__ = ["ImageInputs", "Inputs", "NamedInputs", "NumberInputs", "TableInputs"]
