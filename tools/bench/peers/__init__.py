"""The same night as mqreplay's, written for other engines as well as we can: `python tools/bench/peers.py`.

stages.py        wall, CPU and memory of each stage
recording.py     which files there are
offsets.py       consumerOffset.json in time order -> what changed, carrying the previous file (numpy)
pull_lines.py    lines of the pull log -> a frame (polars)
delta.py         files into Delta tables through delta-rs
judged.py        the decisions on frames: pull_route, offset_continuity, allocation (polars)
polars_peer.py   all of it in polars and delta-rs
duckdb_peer.py   all of it in DuckDB's SQL; tables go out through Arrow
equal.py         two warehouses of the same recording: are their rows the same, and are they the known answers
"""
