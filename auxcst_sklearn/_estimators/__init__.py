"""The estimators, and what they share."""
