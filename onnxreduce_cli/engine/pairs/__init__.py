"""Pairs of small models, before and after, by which the sites of a conversion are checked."""
