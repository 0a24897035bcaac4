"""What a part of a path can mean as the name of a broker. Pure: other evidence decides between the readings."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from mqreplay.core.topic_route import MASTER_ID

_NAME_SLASH_ID: Final = re.compile(r"(?P<name>[^/]+)/(?P<id>[0-9]{1,2})")
_NAME_ID: Final = re.compile(r"(?P<name>[^/]+?)[-_.@](?P<id>[0-9]{1,2})")
_LAST_ID: Final = re.compile(r"(?P<name>[^/]+)-(?P<id>[0-9]{1,2})")
_ROLE: Final = re.compile(r"(?P<name>.+?)[-_.](?P<role>master|m|slave|s)", re.IGNORECASE)
# Pods of rocketmq-operator in STATIC mode: StatefulSet <CR>-<group>-master or <CR>-<group>-replica-<id>, one pod each;
# brokerName is <CR>-<group>. In CONTROLLER mode the names hold no id. Source: getBrokerStatefulSet, getENV.
_OPERATOR: Final = re.compile(r"(?P<name>.+-[0-9]+)-(?:master|replica-(?P<id>[1-9][0-9]?))(?:-0)?")
# Pods of StatefulSets: of rocketmq-operator in CONTROLLER mode, and of others whose name ends with a role.
_ANY_POD: Final = re.compile(r".+-(?:[0-9]+-[0-9]+|master|slave|replica|m|s)-[0-9]+", re.IGNORECASE)


class Reading(NamedTuple):
    """A broker that a part of a path can name; an id of None is that of a slave, or unknown for the ``whole`` part."""

    name: str
    broker_id: int | None
    is_whole: bool = False


def id_of_last(hint: str) -> tuple[str, int] | None:
    """Return NAME and ID of ``NAME-ID`` or ``NAME/ID``, the layouts that docs/recording.md describes.

    >>> id_of_last("broker-a-0"), id_of_last("broker-a/1"), id_of_last("broker-a-0/7"), id_of_last("broker_0")
    (('broker-a', 0), ('broker-a', 1), None, None)
    """
    match = _NAME_SLASH_ID.fullmatch(hint)
    if match is not None and _LAST_ID.fullmatch(match["name"]):  # the folder above has the id, and this is a counter
        return None
    match = match or _LAST_ID.fullmatch(hint)
    return (match["name"], int(match["id"])) if match else None


def operator_pod(hint: str) -> tuple[str, int] | None:
    """Return the broker of a pod or host path of rocketmq-operator; None for any other name.

    >>> operator_pod("broker-0-master-0"), operator_pod("broker-0-replica-1-0"), operator_pod("broker-a-master")
    (('broker-0', 0), ('broker-0', 1), None)
    """
    match = _OPERATOR.fullmatch(hint)
    return (match["name"], int(match["id"] or MASTER_ID)) if match else None


def is_pod(hint: str) -> bool:
    """Return whether a name ends like that of a pod, so that its last number is no broker id.

    >>> is_pod("broker-0-1-0"), is_pod("broker-master-0"), is_pod("broker-1-0")
    (True, True, False)
    """
    return _ANY_POD.fullmatch(hint) is not None


def master_of_role(hint: str) -> str | None:
    """Return NAME of ``NAME-master``.

    >>> master_of_role("broker-a-master"), master_of_role("broker-a-slave"), master_of_role("broker-a-m")
    ('broker-a', None, None)
    """
    match = _ROLE.fullmatch(hint)
    return match["name"] if match and match["role"].lower() == "master" else None


def readings_of(hint: str) -> list[Reading]:
    """Return the brokers that a part of a path can name if other evidence knows them, each once.

    >>> readings_of("die-1")
    [Reading(name='die', broker_id=1, is_whole=False), Reading(name='die-1', broker_id=None, is_whole=True)]
    """
    found: list[Reading] = []
    if (pod := operator_pod(hint)) is not None:
        found.append(Reading(*pod))
    for pattern in (_NAME_SLASH_ID, _NAME_ID, _LAST_ID):
        if match := pattern.fullmatch(hint):
            found.append(Reading(match["name"], int(match["id"])))
    if match := _ROLE.fullmatch(hint):
        found.append(Reading(match["name"], MASTER_ID if match["role"].lower() in ("master", "m") else None))
    found.append(Reading(hint, None, is_whole=True))
    return list(dict.fromkeys(found))
