"""The operations on files and models that the library's functions and the commands share."""
