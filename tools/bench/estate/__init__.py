"""A made-up estate's day in RocketMQ's own text, with known answers. `python tools/bench/estate.py` writes one.

sizes.py      how large
shape.py      what stands still: brokers, topics, groups, clients, who pulls which queue
flow.py       what moves: messages produced and consumed, and the events that break the run of offsets
snapshots.py  consumerOffset.json of every broker, topics.json, subscriptionGroup.json, brokers.json
pulls.py      pull_log.jsonl
records.py    heartbeats, routes, rebalances, broker_runtime
files.py      JSONL, gzipped, a file an hour, the same bytes each time
jobs.py       additions: thousands of short-lived groups; clocks that are behind, resets, orderly listeners
giant.py      additions: a group with half of all pulls, a queue with a fifth
additions.py  additions to an estate (`--full`): these, commits, logs of deliveries
lines.py      text of the lines that only the additions have
write.py      all of it in one pass over the day, and answers.json
"""
