"""Commands in a network namespace that has the loopback device and nothing else, and what they tried to reach.

The kernel counts each packet and connection for which there is no route, in every process of the namespace: an attempt
that a program hides is seen, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# argv: a file for the answer, then the command. Runs as root of the namespace.
INSIDE = r"""
import fcntl, json, os, socket, struct, subprocess, sys
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40

def counts():
    lines = open("/proc/net/snmp").read().splitlines()
    told = {}
    for names, values in zip(lines[::2], lines[1::2]):
        protocol, *columns = names.split()
        told |= {protocol + column: int(value) for column, value in zip(columns, values.split()[1:])}
    told |= {name: int(value) for name, value in map(str.split, open("/proc/net/snmp6"))}
    # No route to it; a question to a name server on this machine.
    return {name: told[name] for name in ("Ip:OutNoRoutes", "Ip6OutNoRoutes", "Udp:NoPorts", "Udp6NoPorts")}

def others():
    found, mine = [], os.readlink("/proc/self/ns/net")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/net") == mine and int(pid) != os.getpid():
                found.append(open(f"/proc/{pid}/comm").read().strip())
        except OSError:
            pass
    return found

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
    fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
devices = [name for _, name in socket.if_nameindex()]
before = counts()
status = subprocess.run(sys.argv[2:]).returncode
left = others()
after = counts()
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    with socket.socket(family, socket.SOCK_STREAM) as outside:
        outside.connect_ex((address, 443))
probed = counts()
told = {"devices": devices, "status": status, "left": left, "noticed": [n for n in probed if probed[n] != after[n]]}
told["attempts"] = {name: after[name] - before[name] for name in after if after[name] != before[name]}
json.dump(told, open(sys.argv[1], "w"))
"""
NEEDS = (
    "these tests need a network namespace: run them as root with CAP_SYS_ADMIN, or allow unprivileged user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), with util-linux's "
    "unshare"
)


@dataclass(frozen=True)
class Alone:
    """What a command did: its exit status and output, and how often it tried to reach something outside.

    ``left`` are the programs that still ran when it had ended.
    """

    status: int
    stdout: str
    stderr: str
    attempts: dict[str, int]
    left: list[str]


def run_alone(command: list[str], folder: Path, environment: dict[str, str]) -> Alone:
    """Run the command; ``folder`` takes the answer. Fails where the machine allows no network namespace."""
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    try:
        allowed = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise AssertionError(NEEDS) from None
    assert allowed.returncode == 0, f"{NEEDS}: {allowed.stderr.strip()}"
    told = folder / "told.json"
    inside = [*unshare, sys.executable, "-c", INSIDE, str(told), *command]
    done = subprocess.run(inside, env=environment, capture_output=True, timeout=600, check=False)
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    assert told.exists(), stderr
    answer = json.loads(told.read_text(encoding="utf-8"))
    assert answer["devices"] == ["lo"]
    assert "Ip:OutNoRoutes" in answer["noticed"], "the kernel does not count what has no route"
    return Alone(answer["status"], stdout, stderr, answer["attempts"], answer["left"])
