"""Lines of RocketMQ's own logs, 4.9 and 5.x, as typed facts.

Pure: a line of text in, a fact or None out; a line that no RocketMQ writes is a DecodeError or None. What a line leaves
out (a queue that was added does not name its client) is left out here too: `mqreplay.record.imports.logs` keeps the
state that lines share.

    line_time      a line's time, level, thread and message; the time zones of log files
    java_text      the toString() texts of RocketMQ's classes inside messages
    client_log     rocketmq_client.log; client_facts: what its lines say
    broker_log     broker.log; broker_facts: what its lines say
    lock_log       lock.log
    stats_log      stats.log
    namesrv_log    namesrv.log
"""
