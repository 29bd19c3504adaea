"""Time and memory, against a loop by hand and against peers."""
