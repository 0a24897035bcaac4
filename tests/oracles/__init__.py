"""Oracles: rules a row at a time, and RocketMQ's reader of a file. Tests compare the code of lib with them.

- `fastjson`, `offset_file`: consumerOffset.json as a broker reads and writes it; ingest reads strictly
- `stale_copy`, `standstill`, `skip`, `queue_progress`, `offset_suspect`, `missing_offsets`, `client_clock`,
  `delivery_audit`: mqreplay's own rules, which kernels apply to arrays; `offset_evidence` has their arguments
"""
