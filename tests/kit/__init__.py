"""What runs in the pipelines of others: the hook of pre-commit, and GitHub's action."""
