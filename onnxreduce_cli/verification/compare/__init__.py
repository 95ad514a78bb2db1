"""Running two models on the same inputs, and judging how their outputs differ."""
