"""Models as files and as scopes: loading, saving, names, types, constants."""
