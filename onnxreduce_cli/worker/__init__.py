"""A process beside this one for what may crash, not end, or take all memory."""
