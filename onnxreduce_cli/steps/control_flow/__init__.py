"""If, Loop, Scan, sequences and optional values."""
