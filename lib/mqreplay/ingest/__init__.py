"""A recording -> silver tables.

recording.py   what lies in a recording's folder, and what each file is
manifest.py    what of it is new, changed, or was read before (bronze.source_file)
lines.py       a JSONL file -> decoded lines, refused lines, counts (pure Python, run on the workers)
records.py     the JSONL kinds -> their silver tables
diffs.py       snapshot files in time order -> what changed (pure Python, run on the workers)
snapshots.py   snapshots -> silver.offset_change, snapshot, topic_config, subscription_group
brokers.py     brokers.json -> silver.broker
to_silver.py   decoded rows into their tables, and the counts into the ledger
ledger.py      counts, quarantine rows, and that no row is lost
night.py       all of it in order, for one cluster
"""
