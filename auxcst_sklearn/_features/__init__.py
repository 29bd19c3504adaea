"""From the features that users bring to the numbers of the networks."""
