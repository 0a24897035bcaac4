"""The polls of proxies: brokers do not know the members behind a proxy in cluster mode, but each proxy knows them.

Brokers know the proxies as members of PROXY_GROUP, with their host but without their port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.record.network.estate import Estate
from mqreplay.record.network.schedule import Plan, Target

REMOTING_PORT: Final = 8080  # ProxyConfig#remotingListenPort by default
KIND: Final = "proxy_members"
PROBE_MS: Final = 60_000
WITH_MEMBERS_MS: Final = 60_000  # of a group whose members the brokers know
WITHOUT_MEMBERS_MS: Final = 20_000


def of_proxies(every: int, known: Sequence[str], estate: Estate) -> dict[Target, Plan]:
    """Return the targets at the proxies with the addresses ``known``, and at the default port of the others' hosts.

    A proxy that did not answer yet is only probed, once a minute.
    """
    found = {}
    for addr in proxy_addrs(known, estate.proxy_hosts):
        found[Target(KIND, addr, None, PROXY_GROUP)] = Plan(max(every, PROBE_MS), probe=True)
        for group in estate.groups() - {PROXY_GROUP} if addr in estate.proxies else ():
            period = WITH_MEMBERS_MS if estate.has_members(group) else WITHOUT_MEMBERS_MS
            found[Target(KIND, addr, None, group)] = Plan(max(every, period))
    return found


def proxy_addrs(known: Sequence[str], hosts: set[str]) -> list[str]:
    """Return the addresses to ask.

    >>> proxy_addrs(["10.0.0.1:9090"], {"10.0.0.1", "10.0.0.2"})
    ['10.0.0.1:9090', '10.0.0.2:8080']
    """
    known_hosts = {each.rpartition(":")[0] for each in known}
    return [*known, *(f"{host}:{REMOTING_PORT}" for host in sorted(hosts - known_hosts))]


def is_probe(target: Target) -> bool:
    """Return whether an answer shows that a server of any kind is alive."""
    return target.kind in ("runtime", "cluster_info") or (target.kind == KIND and target.subject == PROXY_GROUP)
