"""What all benchmarks share: the engine that runs and caches, options, JSON, provenance."""
