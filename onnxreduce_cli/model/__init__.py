"""Models: their files, their graphs, what holds of every one, and what is known of values."""
