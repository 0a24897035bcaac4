"""A recording -> silver tables: list its files, plan what is new, decode lines and snapshots, and keep a ledger."""
