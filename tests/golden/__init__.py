"""What conversions of small models give, as text that is kept: a change of it shows in a review."""
