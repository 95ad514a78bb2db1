"""Checking pairs of small models, one for each distinct site of a conversion."""
