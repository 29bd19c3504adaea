"""The experiments of Chung, Yang and Lin (arXiv:1611.05134)."""
