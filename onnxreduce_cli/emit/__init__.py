"""What steps write with: a context with its builder, numbers, shapes, loops."""
