"""The worker: a process for calls that may crash, never end, or take all memory."""
