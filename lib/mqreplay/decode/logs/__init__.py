"""Lines of RocketMQ's own logs, 4.9 and 5.x, as typed facts.

Pure: a line of text in, a fact or None out; a line that no RocketMQ writes is a DecodeError or None. What a line leaves
out (a queue that was added does not name its client) is left out here too: `mqreplay.importer.logs` keeps the
state that lines share.

    form           declared forms: one record has the text of a message and the fact that it gives
    client_log     the forms of rocketmq_client.log; client_facts: their facts
    broker_log     the forms of broker.log, lock.log and stats.log; broker_facts: their facts
    namesrv_log    the forms of namesrv.log, and their facts
    log_line       a line with a message at any place in it, and its fact
    line_time      a line's time, level, thread and message; the time zones of log files
    java_text      the toString() texts of RocketMQ's classes inside messages
"""
