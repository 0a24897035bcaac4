"""Whether a broker may be restarted, by the last recorded minute: what would stop, and what would be lost or repeated.

A restart is safe if something else does the broker's work meanwhile: a slave that has all messages serves readers
(PullMessageProcessor, MQClientInstance#findBrokerAddressInSubscribe), other masters take the sends, and another slave
acknowledges what a SYNC_MASTER replicates.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from mqreplay.answers.state import findings_at
from mqreplay.core.system_names import is_made_by_brokers
from mqreplay.core.topic_route import MASTER_ID, is_writeable
from mqreplay.moment.brokers import brokers_at, exposure_at, settings_at
from mqreplay.moment.instant import Recorded
from mqreplay.moment.names import require_names
from mqreplay.moment.queues import queues_at, unknown_owners, without_retry_topics
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from mqreplay.words.quantity import counted

YES, NO, UNDETERMINED = "yes", "no", "undetermined"
GRAVE: Final = ("warning", "critical")


@dataclass(frozen=True)
class Check:
    """One condition: ``answer`` is YES, NO or UNDETERMINED; ``text`` says why."""

    name: str
    answer: str
    text: str


@dataclass(frozen=True)
class Readiness:
    """``answer``: NO if a check says so, else UNDETERMINED if one is, else YES."""

    cluster: str
    broker_name: str
    broker_id: int
    at: dt.datetime
    checks: list[Check]

    @property
    def answer(self) -> str:
        """Return the answer of all checks."""
        answers = {check.answer for check in self.checks}
        return NO if NO in answers else UNDETERMINED if UNDETERMINED in answers else YES

    def as_plain(self) -> dict[str, Any]:
        """Return the answer as plain values, for JSON."""
        checks = [{"check": each.name, "answer": each.answer, "text": each.text} for each in self.checks]
        head = {"cluster": self.cluster, "broker_name": self.broker_name, "broker_id": self.broker_id}
        return {**head, "at": self.at, "answer": self.answer, "checks": checks}


def required_readiness(
    recorded: Recorded, broker_name: str, broker_id: int, at: dt.datetime, settings: Settings
) -> Readiness:
    """Return the readiness of a broker. Raises InputError if nothing is known of it; it names similar ones."""
    ready = readiness(recorded, broker_name, broker_id, at, settings)
    if ready is None:
        require_names(recorded, brokers=[broker_name])
        ids = brokers_at(recorded, at, broker_name)["broker_id"].to_list()
        known = f"; known ids are {', '.join(map(str, ids))}" if ids else ""
        raise InputError(f"nothing is known of broker {broker_name} {broker_id} at {at:%Y-%m-%d %H:%M:%S} UTC{known}")
    return ready


def readiness(
    recorded: Recorded, broker_name: str, broker_id: int, at: dt.datetime, settings: Settings
) -> Readiness | None:
    """Return whether a broker could be restarted at ``at``; None if nothing is known of it.

    ``settings`` say how long a finding counts as open.
    """
    brokers = brokers_at(recorded, at).to_dicts()
    namesakes = [row for row in brokers if row["broker_name"] == broker_name]
    mine = next((row for row in namesakes if row["broker_id"] == broker_id), None)
    if mine is None:
        return None
    others = [row for row in namesakes if row["broker_id"] != broker_id]
    masters = {row["broker_name"]: _takes_sends(row) for row in brokers if row["broker_id"] == MASTER_ID}
    findings = findings_at(recorded, at, until_closed_by=settings)
    checks = [_answers(mine)]
    if broker_id == MASTER_ID:
        checks += [
            _slaves(others),
            _exposure(recorded, broker_name, at),
            *_topics(recorded, broker_name, at, masters, findings),
        ]
    else:
        checks += _copies(recorded, broker_name, broker_id, others, at)
    checks.append(_findings(findings, broker_name))
    return Readiness(recorded.cluster, broker_name, broker_id, at, checks)


def _answers(mine: dict[str, Any]) -> Check:
    if mine["up"] is None:
        return Check("answers", UNDETERMINED, "nobody asked the broker lately; mqreplay record does")
    if not mine["up"]:
        return Check("answers", NO, "the broker is down or does not answer: find out why first")
    if mine["listed_by"] is not None and mine["listed_by"] < mine["name_servers"]:
        listed = f"{mine['listed_by']} of {mine['name_servers']} name servers"
        return Check("answers", NO, f"only {listed} list it: clients of the others already lack it")
    return Check("answers", YES, f"it answered at {mine['answered_ts']:%H:%M:%S} UTC")


def _takes_sends(master: dict[str, Any]) -> bool | None:
    """Return whether a master answers and a name server lists it; None if nobody asked it lately."""
    return False if master["listed_by"] == 0 else master["up"]


def _slaves(slaves: list[dict[str, Any]]) -> Check:
    """Return whether a slave can serve the master's readers meanwhile."""
    if not slaves:
        return Check("slaves", NO, "it has no slave: nobody can read its queues meanwhile")
    near = [row for row in slaves if row["up"] and row["behind_bytes"] is not None]
    if near:
        best = min(near, key=lambda row: row["behind_bytes"])
        behind = best["behind_bytes"]
        text = f"slave {best['broker_id']} answers and is {behind:,} bytes behind"
        return (
            Check("slaves", YES, text)
            if behind == 0
            else Check("slaves", NO, f"{text}: readers would wait for these messages")
        )
    if any(row["up"] is None or (row["up"] and row["behind_bytes"] is None) for row in slaves):
        return Check("slaves", UNDETERMINED, "how far its slaves are behind is not recorded; mqreplay record polls it")
    return Check("slaves", NO, "no slave of it answers: nobody can read its queues meanwhile")


def _exposure(recorded: Recorded, broker_name: str, at: dt.datetime) -> Check:
    """Return what would be delivered again: offsets that the slave has not copied yet."""
    exposed = exposure_at(recorded, broker_name, at)
    if exposed.get("redelivered") is None:
        why = "which offsets the slave lacks is not recorded: copies of both offset files show it"
        return Check("offsets", UNDETERMINED, why)
    again, unknown = exposed["redelivered"], exposed["unknown_queues"]
    open_part = f"; of {unknown} queues it is not known" if unknown else ""
    # A master that stops in order saves its offsets; clients read from the slave, and go on where they are.
    # Clients that keep their queues do not ask for the offset: only those that join meanwhile read the slave's copy.
    range_text = f"0 to {again:,} messages would be delivered again, if members join meanwhile"
    text = f"if it failed instead, {range_text if again else 'no message would be delivered again'}{open_part}"
    return Check("offsets", YES, text)


def _topics(
    recorded: Recorded,
    broker_name: str,
    at: dt.datetime,
    masters: dict[str, bool | None],
    findings: pl.DataFrame,
) -> list[Check]:
    """Return whether producers have another master for each topic, and which groups own queues there.

    ``masters``: by broker name, whether it takes sends. A route may still name a master that is down.
    """
    routes = recorded.before("silver.route", "ts", at, dt.timedelta(days=1)).filter(pl.col("queue_datas").is_not_null())
    last = routes.sort("ts", "record_id").group_by("topic").last().select("topic", "queue_datas").collect()
    takers: dict[str, set[str]] = {}
    for topic, queue_datas in last.rows():
        if not is_made_by_brokers(topic):
            takers[topic] = {each["broker_name"] for each in queue_datas if is_writeable(each["perm"])}
    others = {topic: names - {broker_name} for topic, names in takers.items() if broker_name in names}
    living = {topic: {masters.get(name) for name in names} for topic, names in others.items()}
    alone = sorted(topic for topic, taken in living.items() if taken <= {False})
    unknown = sorted(topic for topic, taken in living.items() if True not in taken and None in taken)
    there = without_retry_topics(queues_at(recorded, at)).filter(pl.col("broker_name") == broker_name)
    queues = there.filter(pl.col("owners").list.len() > 0)
    groups = queues["consumer_group"].unique().sort().to_list()
    read = f"{counted(len(groups), 'group')} read {counted(queues.height, 'queue')} there{_names(groups)}"
    unknown_text = [f"not known: {each}" for each in unknown_owners(there)]
    read_text = [] if unknown_text and not groups else [read if groups else "no group reads its queues"]
    owners = Check("owners", YES, "; ".join([*read_text, *unknown_text]))
    if last.is_empty():
        why = "no route is recorded: it is not known who else takes the sends"
        return [Check("topics", UNDETERMINED, why), owners]
    if alone:
        why = f"nobody could send to {counted(len(alone), 'topic')} meanwhile{_names(alone)}"
        down = sorted({name for topic in alone for name in others[topic]})
        why += f"; no answer from, or not listed: {', '.join(down)}" if down else ""
        return [Check("topics", NO, why), owners]
    if unknown:
        why = f"nobody asked the other masters of {counted(len(unknown), 'topic')} lately{_names(unknown)}"
        return [Check("topics", UNDETERMINED, why), owners]
    partners = sorted({name for names in others.values() for name in names})
    return [
        Check("topics", YES, "each topic can be sent to on another master"),
        owners,
        *_partners(findings, partners),
    ]


def _copies(
    recorded: Recorded, broker_name: str, broker_id: int, others: list[dict[str, Any]], at: dt.datetime
) -> list[Check]:
    """Return whether the master of a slave can do without it."""
    settings = settings_at(recorded, at, broker_name)
    role = settings.filter((pl.col("broker_id") == MASTER_ID) & (pl.col("name") == "brokerRole"))["value"].to_list()
    more = [row for row in others if row["broker_id"] != MASTER_ID and row["up"]]
    master = next((row for row in others if row["broker_id"] == MASTER_ID), None)
    checks = []
    if master is None or master["up"] is None:
        checks.append(Check("master", UNDETERMINED, "it is not known whether its master answers"))
    elif not master["up"]:
        checks.append(Check("master", NO, "its master is down: this slave serves its readers"))
    else:
        checks.append(Check("master", YES, "its master answers"))
    if more:
        checks.append(Check("replication", YES, f"slave {more[0]['broker_id']} goes on copying"))
    elif not role:
        checks.append(Check("replication", UNDETERMINED, "the role of its master is not recorded (brokerRole)"))
    elif role[0] == "SYNC_MASTER":
        text = "it is the only slave of a SYNC_MASTER: each send would be answered SLAVE_NOT_AVAILABLE"
        checks.append(Check("replication", NO, text))
    else:
        checks.append(Check("replication", YES, f"its master is {role[0]} and does not wait for it"))
    return checks


def _findings(findings: pl.DataFrame, broker_name: str) -> Check:
    found = findings.filter((pl.col("broker_name") == broker_name) & pl.col("severity").is_in(GRAVE))
    if found.is_empty():
        return Check("findings", YES, "no finding about it is open")
    named = [f"{row['kind']} {row['finding_id'][:8]}" for row in found.to_dicts()]
    return Check("findings", NO, f"{counted(len(named), 'finding')} about it open{_names(named)}")


def _partners(findings: pl.DataFrame, partners: list[str]) -> list[Check]:
    """Return a check if a master that would take the sends has a critical finding."""
    grave = (pl.col("severity") == "critical") & pl.col("broker_name").is_in(partners)
    rows = findings.filter(grave).to_dicts()
    if not rows:
        return []
    named = [f"{row['kind']} {row['finding_id'][:8]} of {row['broker_name']}" for row in rows]
    return [Check("partners", NO, f"a master that would take the sends has a critical finding{_names(named)}")]


def _names(names: list[str]) -> str:
    """Return up to five names after a colon."""
    if not names:
        return ""
    return ": " + ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
