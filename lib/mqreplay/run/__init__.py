"""How kernels are run: the passes of a night over its shards (plan.py), and what runs them (spark.py)."""
