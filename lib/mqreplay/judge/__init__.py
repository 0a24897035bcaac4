"""Kernels: rows of evidence in, judged rows out. Pure: no Spark, no files, no clock."""
