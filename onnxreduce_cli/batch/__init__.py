"""Converting many models: each apart from the others, and resumed where a run ended early."""
