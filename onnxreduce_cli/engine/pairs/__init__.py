"""The pairs of small models that a conversion's sites are checked by."""
