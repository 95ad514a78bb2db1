"""What runs in the pipelines of others: the hook of pre-commit, GitHub's action, a container."""
