"""Models as graphs: scopes, names, order, calls, and edits in place."""
