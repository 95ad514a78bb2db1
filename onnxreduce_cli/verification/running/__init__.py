"""Running models in the executors, most of them in the worker."""
