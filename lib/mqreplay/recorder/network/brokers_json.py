"""brokers.json of a recording, from the answers of brokers. Brokers that left the cluster stay in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from mqreplay.core.version import version_key
from mqreplay.recorder.network.topology import BrokerKey
from mqreplay.words.errors import InputError, RocketMQError

RATIO: Final = "accessMessageInMemoryMaxRatio"
BROKERS_FILE: Final = "brokers.json"


class BrokersJson:
    """The content of the file. `changed` is true if it differs from the written file."""

    def __init__(self, cluster: str, name_servers: tuple[str, ...], memory: int | None, before: dict[str, Any]) -> None:
        """Take ``before``, the file of an earlier run in the same folder; empty if there was none."""
        self._fields: dict[str, Any] = {"cluster": cluster, "name_servers": list(name_servers)}
        memory = before.get("physical_memory_bytes") if memory is None else memory
        if memory is not None:
            self._fields["physical_memory_bytes"] = memory
        self._brokers: dict[str, dict[str, Any]] = dict(before.get("brokers", {}))
        self._written: dict[str, Any] | None = None

    @property
    def versions(self) -> list[str]:
        """Return the distinct versions of all brokers."""
        return sorted({each["rocketmq_version"] for each in self._brokers.values() if "rocketmq_version" in each})

    def seen(self, broker: BrokerKey, addr: str) -> None:
        """Set a broker's address."""
        self._broker(broker)["addr"] = addr

    def configured(self, broker: BrokerKey, properties: dict[str, str]) -> None:
        """Set a broker's settings in effect: a 5.x slave reports the ratio lowered by 10."""
        fields = self._broker(broker)
        fields["properties"] = properties
        fields.pop(f"effective_{RATIO}", None)
        if re.fullmatch("-?[0-9]{1,9}", ratio := properties.get(RATIO, "")):
            fields[f"effective_{RATIO}"] = int(ratio)

    def running(self, broker: BrokerKey, version: str | None) -> None:
        """Take a broker's version, as V5_3_3.

        >>> brokers = BrokersJson("C", ("h:1",), None, {})
        >>> brokers.running(("b", 0), "V5_3_3")
        >>> brokers.content()["brokers"]
        {'b-0': {'rocketmq_version': '5.3.3'}}
        """
        try:
            numbers = version_key(version or "")
        except RocketMQError:
            return
        self._broker(broker)["rocketmq_version"] = ".".join(map(str, numbers))

    def content(self) -> dict[str, Any]:
        """Return the content of the file."""
        versions = self.versions
        shared = {"rocketmq_version": versions[0]} if len(versions) == 1 else {}
        brokers = {key: dict(fields) for key, fields in sorted(self._brokers.items())}
        return self._fields | shared | {"brokers": brokers}

    def changed(self) -> dict[str, Any] | None:
        """Return the content if it differs from that of the last call."""
        content = self.content()
        if content == self._written:
            return None
        self._written = content
        return content

    def _broker(self, broker: BrokerKey) -> dict[str, Any]:
        return self._brokers.setdefault(f"{broker[0]}-{broker[1]}", {})


def earlier_brokers(folder: Path, cluster: str) -> dict[str, Any]:
    """Return brokers.json of a recording that is continued; empty if there is none.

    Raises InputError if it is the recording of another cluster, or cannot be read.
    """
    path = folder / BROKERS_FILE
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}; give --out another folder") from None
    if not isinstance(found, dict) or not isinstance(found.get("brokers", {}), dict):
        raise InputError(f"{path} is not a file of a recording; give --out another folder")
    if found.get("cluster") not in (None, cluster):
        raise InputError(
            f"{folder} is a recording of cluster {found['cluster']!r}, and the name servers are those of "
            f"{cluster!r}; give --out another folder"
        )
    return {**found, "brokers": {key: dict(each) for key, each in found.get("brokers", {}).items()}}
