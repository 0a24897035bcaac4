"""Rows of the gold tables, one file a table: evidence of one shard and small context -> judged rows. Pure."""
