"""The results of commands as text and as data."""
