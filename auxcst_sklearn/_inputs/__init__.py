"""What a user's X becomes: tables, images or numbers as the float32 rows of a network."""

from .base import Inputs
from .images import ImageInputs
from .numbers import NumberInputs
from .table import TableInputs

__all__ = ["ImageInputs", "Inputs", "NumberInputs", "TableInputs"]
