"""Training: validated rows, batches, one loop for a network or a stack, temperature."""
