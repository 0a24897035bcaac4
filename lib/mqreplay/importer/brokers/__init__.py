"""The broker of a file, from names that evidence confirms."""
