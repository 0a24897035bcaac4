"""Tables as mqadmin prints them, and what import reads from a text."""

from __future__ import annotations

import datetime as dt

from mqreplay.decode.kinds import KINDS
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.mqadmin.admin import Admin
from mqreplay.importer.mqadmin.outputs import outputs_of
from mqreplay.importer.staging import line_of
from mqreplay.words.errors import DecodeError

NOON = 1770984000000  # 2026-02-13 12:00 UTC
STORED = "2026-02-13 06:27:30"


def topic_row(*cells):
    """Return a line of topicStatus."""
    return "{:<32}  {:<4}  {:<20}  {:<20}    {}\n".format(*cells)


def group_row(*cells):
    """Return a line of consumerProgress."""
    return "{:<64}  {:<32}  {:<4}  {:<20}  {:<20}  {:<20}  {}\n".format(*cells)


TOPIC_HEAD = topic_row("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")
TOPIC = (
    TOPIC_HEAD + topic_row("broker-a", 0, 0, 631, f"{STORED},408") + topic_row("broker-a", 1, 0, 640, f"{STORED},309")
)
GROUP_HEAD = group_row("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#LastTime")
GROUP = (
    GROUP_HEAD
    + group_row("orders", "broker-a", 0, 631, 600, 31, STORED)
    + group_row("orders", "broker-a", 1, 640, 640, 0, "N/A")
    + "\nConsume TPS: 1.00\nDiff Total: 31\n"
)
TOPIC_COMMAND = "sh mqadmin topicStatus -n h:9876 -t orders\n"


class Read:
    """What a text gives: records by kind, refusals, and numbers of rows left out."""

    def __init__(self, text, *names, ts_ms=NOON):
        self.admin = Admin(dt.UTC, BrokerNames())
        self.records, self.refused = [], []
        for output in outputs_of(text, dt.UTC):
            try:
                self.admin.learn(output, ts_ms)
                records = self.admin.records_of(output, ts_ms, names)
            except DecodeError as error:
                self.refused.append(error.detail)
                continue
            self.records += [(stem, KINDS[stem].decode(line_of(record))) for stem, record in records]

    @property
    def offsets(self):
        """Return the last two offsets of each row: minimum and maximum, or those of broker and consumer."""
        return [tuple(row[3:5]) for _, record in self.records for row in record["offsets"]]

    @property
    def broken(self):
        """Return the number of broken rows."""
        return sum(count for reason, count in self.admin.left_out.items() if "broken" in reason)
