"""Running models on inputs."""
