"""A recording -> silver tables.

recording.py     a file of a recording; recorded_files.py: a million files as columns
listing.py       lists recordings, in tasks if they are large; walk.py: a local folder; store_walk.py: one of a store
opening.py       opens a file; prefetch.py: reads files of a store ahead
cluster_name.py  the cluster of a recording
checksums.py     comparison with SHA256SUMS; digests.py: SHA-256 of each file
manifest.py      which files are new, changed or were read before (bronze.source_file); planning.py: of a million files
lines.py         a JSONL file -> blocks, decoded lines, refused lines, counts (runs on the workers); gzip_stream.py
plain_lines.py   many lines at once, by polars; line_guard.py: proof that polars reads them like the decoder
repeats.py       lines that are twice in a file; copies.py: lines that are in two files
records.py       JSONL kinds -> their silver tables; arrow.py: records -> Arrow batches
diffs.py         snapshot files in time order -> changes (runs on the workers)
entries.py       the entries of one snapshot; offset_bytes.py, numbered_offsets.py: comparison with the previous one
polled.py        polled consumer offsets beside copies of files; polled_lines.py: their lines
pieces.py        the snapshots of a source in pieces; offset_changes.py: Arrow batches
snapshots.py     snapshots -> silver.offset_change; snapshot_rows.py, snapshot_file_rows.py: rows of other tables
snapshot_rounds.py  snapshots in rounds of many files; late.py: what is read again after late snapshots
offset_checkpoint.py  offsets at the start of each day (silver.offset_checkpoint)
brokers.py       brokers.json -> silver.broker
to_silver.py     decoded lines into their tables, and counts into the ledger
ledger.py        counts and quarantine rows; checks that no row is lost; ledgers.py: ledgers into their tables
run.py           all of it in order, for one cluster
"""
