"""Comparing whole models."""
