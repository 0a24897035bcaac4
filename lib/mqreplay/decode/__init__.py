"""Bytes and text that RocketMQ, its clients and a recorder left behind, as plain typed records.

Pure: no I/O, no clock, no Spark. Incomplete or foreign content is a DecodeError with a stable code, a message and the
byte. Content is accepted completely or not at all.

Files of a recording: `recording_files.classify` gives the kind of each by its path

Files of a snapshot, read whole:
    consumer_offset     consumerOffset.json, lmqConsumerOffset.json: columns; offset_table: its table, fast and strict
    topics, subscription_group, delay_offset, message_request_mode, pop_order    the broker's other configuration files
    client_offsets      <group>.offsets.json of a broadcasting consumer
    brokers             brokers.json of the recording

kind: the record of a kind of file, which is in the module of its decoder; kinds: all records by stem

Lines of a recording:
    pull_log, offset_commits, heartbeats, consumer_lists, routes, rebalance_log, assignments, broker_runtime,
    ha_status, cluster_info, lock_requests, message_logs (consume_log, produce_log), topic_stats, server_requests,
    consumer_connections, consume_stats, recorder_events, pop_log, pop_acks, pop_assignments, other_requests
    polled_offsets      the lines of consumerOffset.jsonl.gz

Other evidence of clusters
    capture             packets of the remoting protocol
    logs                the log files of clients, brokers and name servers

Basics:
    text                bytes to text, and errors at a byte
    fastjson_text       fastjson's JSON with bare and object keys, strictly
    jsonl               a line as a JSON object, strictly
    columns             plain columns: types, bounds, what is required
    fields, body, message_queue    typed fields, bodies inside records, queues as objects
"""
