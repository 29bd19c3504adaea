"""Checks that all parts of the package share."""
