"""Engines run the functions of a pass: Spark, or processes of this machine. All engines give the same tables."""
