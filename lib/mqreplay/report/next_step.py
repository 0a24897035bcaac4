"""The advice of a finding, with its commands filled in: they can be copied and run; and known issues."""

from __future__ import annotations

import datetime as dt
import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import Language
from mqreplay.report.data import Row

PLACEHOLDERS: Final = {
    "GROUP": "consumer_group",
    "TOPIC": "topic",
    "CLIENT_ID": "client_id",
    "BROKER": "broker_name",
    "BROKER_NAME": "broker_name",
    "QUEUE": "queue_id",
    "QUEUE_ID": "queue_id",
    "CLUSTER": "cluster",
}
OFFSETS: Final = ("stuck_offset", "offset")  # values that name the message to look at
EXPLAIN: Final = "`mqreplay explain FINDING`"
Addresses = Mapping[tuple[str, int], Mapping[str, str]]  # by broker name and id: BROKER_ADDR and NAMESRV


def names_of(finding: Row, addresses: Addresses | None = None) -> dict[str, str]:
    """Return what the words in capitals of an advice's commands mean for a row of gold.finding.

    FINDING is the beginning of the id, as `mqreplay explain` takes it; TIME is the begin in epoch ms, which mqadmin
    takes in any time zone. ``addresses`` are those of the cluster's brokers.
    """
    known = {word: finding.get(column) for word, column in PLACEHOLDERS.items()}
    values = json.loads(finding.get("values") or "{}")
    known["OFFSET"] = next((values[name] for name in OFFSETS if isinstance(values.get(name), int)), None)
    begin = finding.get("from_ts")
    if begin is not None:
        begin = dt.datetime.fromisoformat(begin) if isinstance(begin, str) else begin
        known["TIME"] = int(begin.replace(tzinfo=begin.tzinfo or dt.UTC).timestamp() * 1000)
    master = addresses_of(finding.get("broker_name"), finding.get("broker_id"), addresses or {})
    texts = {word: str(value) for word, value in known.items() if value is not None}
    return {"FINDING": str(finding["finding_id"])[:8]} | texts | dict(master)


def addresses_of(broker_name: str | None, broker_id: int | None, addresses: Addresses) -> Mapping[str, str]:
    """Return the addresses of a broker, by default of the master; of none, the name servers that all brokers share."""
    if broker_name is not None and (known := addresses.get((broker_name, broker_id or 0))) is not None:
        return known
    servers = {each["NAMESRV"] for each in addresses.values() if "NAMESRV" in each}
    return {"NAMESRV": servers.pop()} if len(servers) == 1 else {}


def broker_addresses(warehouse: Warehouse, cluster: str) -> Addresses:
    """Return the addresses of the cluster's brokers, as they were recorded last."""
    columns = ("broker_name", "broker_id", "broker_addr", "properties", "ts")
    rows = warehouse.read("silver.broker", RowFilter(cluster)).select(columns).sort("ts", nulls_last=False).collect()
    found: dict[tuple[str, int], dict[str, str]] = {}
    for row in rows.iter_rows(named=True):
        servers = dict(row["properties"] or ()).get("namesrvAddr")
        known = {"BROKER_ADDR": row["broker_addr"], "NAMESRV": servers}
        key = row["broker_name"], row["broker_id"]
        found[key] = found.get(key, {}) | {word: value for word, value in known.items() if value}
    return found


def without_explain(advice: str, words: Language) -> str:
    """Return an advice for the explanation itself: it names the evidence below, not the command that shows it.

    >>> from mqreplay.language.language import in_english
    >>> without_explain("`mqreplay explain FINDING` lists them. Who: `mqreplay explain FINDING`.", in_english())
    'The evidence below lists them. Who: the evidence below.'
    """
    parts = advice.split(EXPLAIN)
    text = parts[0]
    for part in parts[1:]:
        begins = not text or text.rstrip().endswith((".", "。"))
        text += words.filled("The evidence below" if begins else "the evidence below") + part
    return text


def advice_parts(advice: str, names: Mapping[str, str]) -> list[str]:
    """Return text and commands by turns. In commands, the words that ``names`` has are replaced, quoted for a shell.

    >>> advice_parts("Run `stop -g GROUP -t TOPIC` for a GROUP.", {"GROUP": "my group"})
    ['Run ', "stop -g 'my group' -t TOPIC", ' for a GROUP.']
    >>> advice_parts("A ` without its pair: GROUP", {"GROUP": "g"})
    ['A ` without its pair: GROUP']
    """
    parts = advice.split("`")
    if len(parts) % 2 == 0:
        return [advice]
    return [_named(part, names) if number % 2 else part for number, part in enumerate(parts)]


def _named(command: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Z_]+", lambda word: shlex.quote(names[word[0]]) if word[0] in names else word[0], command)


def known_issue_text(issue: Row) -> str:
    """Return a row of gold.known_issue as a sentence, without its address and advice.

    >>> row = {"issue": 4215, "component": "broker", "versions": ["4.9.3"], "mended_in": "4.9.4", "title": "a fault"}
    >>> known_issue_text(row)
    'apache/rocketmq#4215, mended in 4.9.4. It can explain this: a fault (broker 4.9.3).'
    >>> known_issue_text(row | {"mended_in": None})
    'apache/rocketmq#4215, not mended in any checked release. It can explain this: a fault (broker 4.9.3).'
    """
    who = f"{issue['component']} {', '.join(issue['versions'])}"
    return f"{issue_name(issue)}. It can explain this: {issue['title']} ({who})."


def issue_name(issue: Mapping[str, Any]) -> str:
    """Return the issue of a row of gold.known_issue, and the release that mends it."""
    mended = "not mended in any checked release" if issue["mended_in"] is None else f"mended in {issue['mended_in']}"
    return f"apache/rocketmq#{issue['issue']}, {mended}"
