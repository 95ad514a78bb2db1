"""A catalogue of models with planted faults, and of harmless rewrites."""
