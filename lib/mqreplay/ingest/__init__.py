"""A recording -> silver tables.

recording.py   what lies in a recording's folder, and what each file is
manifest.py    what of it is new, changed, or was read before (bronze.source_file)
lines.py       a JSONL file -> blocks, decoded lines, refused lines, counts (pure Python, run on the workers)
plain_lines.py many lines at once, by polars; line_guard.py: the proof that they are what the decoder reads
repeats.py     lines that stand twice in a file
records.py     the JSONL kinds -> their silver tables
copies.py      lines that stand in two files
diffs.py       snapshot files in time order -> what changed (pure Python, run on the workers)
entries.py     what one snapshot holds; offset_bytes.py: against the one before; moves.py: as Arrow batches
pieces.py      a source's snapshots in pieces that join exactly
snapshots.py   snapshots -> silver.offset_change; snapshot_rows.py: the few rows beside
brokers.py     brokers.json -> silver.broker
to_silver.py   decoded lines into their tables, and the counts into the ledger
snapshot_rounds.py  the same of snapshots, so many files at a time; late.py: what is read again for those that come late
told.py        what tasks tell beside their rows; pace.py: how far reading has come
ledger.py      counts, quarantine rows, and that no row is lost; ledgers.py: a run's ledgers into their tables
run.py         all of it in order, for one cluster
"""
