"""Conversion of the user's features to the inputs of the networks."""
