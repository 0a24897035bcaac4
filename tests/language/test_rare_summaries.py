"""Summaries that few nights have: parts that may be missing, several names, more than are listed."""

from __future__ import annotations

from each_case import for_each
from language.chinese import report, unknown

RESET = "Group g on t: "
SENT = "no answer within the time of the send"
FORMS = [
    *(
        f"{RESET}{queues} reset{moved}{by}{again}{source}."
        for queues in ("1 queue", "at least 4 queues")
        for moved in (
            "",
            ", back by up to 1 message (b/0: from 3 to 2)",
            ", ahead by up to 2 messages (b/0: from 0 to 2)",
            ", back by up to 9 messages, ahead by up to 2 messages (b/0: from 10 to 1)",
            " (b/0: from 5 to 5)",
        )
        for by in ("", ", started by 10.0.0.1:1", ", started by 10.0.0.1:1 and b:2 and c:3 and 2 more")
        for again in (
            "",
            "; at most 1 message delivered again",
            "; at least 20 messages delivered again",
            "; at most 7 messages skipped",
        )
        for source in ("", "; no client of the group committed that")
    ),
    f"{RESET}4 queues reset, concluded from the offsets that its brokers hold.",
    f"{RESET}4 queues reset; at least 3 messages delivered again, concluded from the offsets that its brokers hold.",
    f"{RESET}6 queues reset, ahead by up to 256 messages (b/1: from 85 to 341); at most 1502 messages skipped,"
    " concluded from the offsets that its brokers hold.",
    f"{RESET}1 queue reset, ahead by up to 3 messages (b/0: from 100 to 103). Pulls that came later, until 01:02:03"
    " UTC, were answered with these offsets: clients that were further ahead went back, at most 91 messages delivered"
    " again.",
    *(
        f"{RESET}{text}"
        for to in (
            "",
            " to the ends of the queues",
            " to 2026-11-24 01:02:03 UTC",
            " to 2026-11-24 01:02:03 UTC and the ends of the queues",
        )
        for text in (
            f"offsets were reset{to}; to which offsets is not recorded.",
            f"offsets were reset{to}, started by a:1 and b:2; to which offsets is not recorded.",
            f"a reset of the offsets{to} was started; whether it was carried out, and to which offsets, is not"
            " recorded.",
            f"a reset of the offsets{to} was started by a:1, and refused: no topic; try again. Or not.",
        )
    ),
    *(
        f"{sends} to {topic} failed{on}{within}{code}: {SENT}{later}."
        for sends in ("1 send", "143 sends")
        for topic in ("t", "several topics")
        for on in ("", " on b", " on the master of b", " on slave 1 of b")
        for within in ("", " within 100 s", " within 2 h 5 min")
        for code in ("", " (code 2)")
        for later in (
            "",
            "; no later try sent 1 message",
            "; no later try sent 3 messages; whether later tries succeeded is not recorded",
        )
    ),
    *(
        f"{broker} acknowledged 412 messages of {topic} as SLAVE_NOT_AVAILABLE{within}: no slave was close enough to"
        f" the master.{slaves}"
        for broker in ("The master of b", "Slave 1 of b", "Broker-b", "A broker")
        for topic in ("t", "several topics")
        for within in ("", " within 60 s")
        for slaves in (
            "",
            " Meanwhile the master reported as few as 1 connected slave, 0 in sync. A slave lacked up to 7 bytes.",
        )
    ),
    *(
        f"{broker} refused 1 pull{group}{topic} for 118 s (code 16): another reason."
        for broker in ("The master of b", "Slave 2 of b")
        for group in (" of group g", " of several groups")
        for topic in (" from t", " from several topics")
    ),
    *(
        f"{server} answered with an old route of {topic} for 95 s. {listed} By the broker's topics and the list of"
        " brokers it has b: 8 read and 8 write queues, perm 6; 0 at a:1, 1 at b:2, 2 at c:3. Producers found no queue"
        " in the route: their sends failed."
        for server in ("A name server", "Name server a:9876")
        for topic in ("t", "3 topics, among them t")
        for listed in (
            "It did not list b.",
            "It listed b: 4 read and 4 write queues, perm 4; no address.",
            "It listed b: 4 read and 4 write queues, perm 4; 0 at a:1.",
            "It listed b: 4 read and 4 write queues, perm 4; 0 at a:1, 1 at b:2.",
        )
    ),
    *(
        f"Slave 1 of b had another configuration than its master for 900 s: {text}. The master went down meanwhile, at"
        " 01:02:03 UTC."
        for text in (
            "it lacked group g",
            "it lacked group g, group h, topic t",
            "it lacked group a, group b, group c, group d, group e and 3 more",
            "it had other values of group g (consumeEnable true instead of false), topic t (perm 2 instead of 6)",
            "it lacked topic t; it had other values of topic u (perm 2 instead of 6, readQueueNums 4 instead of 8)",
        )
    ),
    *(
        f"Slave 1 of b did {answer}not have the newest data of its master for 147 s: it lacked 1 byte of the commit log"
        f"{most}. A loss of the master would have lost what no other slave has."
        for answer in ("", "not answer, and did ")
        for most in ("", ", at most 1 message")
    ),
    *(
        f"The listener of group g {what} in b/0, b/1 for 95 s{cached}{control}."
        for what in (
            "did not finish the message at offset 30 of t",
            "did not finish the first messages of t",
            "was too slow for t",
        )
        for cached in (
            "; the client cached up to 1 message",
            "; the client cached up to 9 messages of a queue",
            "; the client pulled the messages up to offset 7 too",
        )
        for control in ("", "; flow control (cachedMessageCount, span) held its pulls back")
    ),
    *(
        f"Group g {what} b/0, b/1{more} for 115 d 3 h{end}."
        for more in ("", " and 3 more queues")
        for what, end in (
            ("did not advance on t in", " while messages arrived; 1 message waited. 1 member stayed connected"),
            (
                "did not advance on t in",
                " while messages arrived; 2 messages waited. Its last member left at 01:02:03 UTC",
            ),
            (
                "did not acknowledge the first message of t in",
                "; 1 message was handed out and not acknowledged, and block what follows",
            ),
        )
    ),
    "Group g stood still on t in b/0, b/1 for 95 s, with up to 1 message waiting; 3 pulls refused meanwhile.",
    "Group g did not acknowledge messages of t within their invisible time; they were put back into %RETRY%g_t, 1"
    " time.",
    "Messages were put back into %RETRY%g_t, 3 times: several known groups may be meant.",
    "Group g gave up messages, now in topic %DLQ%g.",
    "Group g gave up 2 messages, now in topic %DLQ%g: reconsumeTimes 2 reached maxReconsumeTimes 2; the consumer asked"
    " for a dead letter (delay level -1).",
    "Group g: 2 clients (a, b) could not lock 9 queues (t b/0, t b/1, ...) for 140 s; the client that had them was not"
    " recorded.",
    "Consumer c of group g left (its queues are not known); the recording cannot tell whether it was stopped in order"
    " or killed.",
    "Members of group g subscribed to different things: a TAG * against b TAG * against c TAG *.",
    "t could not be written on the master of b for 118 s (perm 4): producers found no queue of it there, nor on another"
    " known master: their sends failed without a route.",
    "t could not be read on the master of b for 118 s (perm 2), while 3 groups consumed it: messages of these queues"
    " waited.",
]


@for_each(FORMS)
def test_a_rare_summary_is_translated(text: str) -> None:
    assert not (missing := unknown([text])), report(missing)
