"""Models as files: read in every form, large data left where it is, written whole."""
