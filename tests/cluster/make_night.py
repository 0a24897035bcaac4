"""Makes a recorded night with known faults: `python -m cluster.make_night {refusals,consumers} VERSION OUT`.

It needs root, tcpdump and a Linux of its own for a while: name spaces keep its network and its mounts apart.

    PYTHONPATH=lib:tests unshare --net --mount bash -c \
        'ip link set lo up; exec python -m cluster.make_night refusals 5.3.3 OUT/refusals-5.3.3 --work /opt/rocketmq'

OUT/NAME is the recording, OUT/NAME.tar.xz its archive, OUT/NAME.truth.json what was done. OUT/NAME.raw.tar.xz keeps
what the recording was made of: both recordings of `mqreplay record`, the capture and the logs, for `mqreplay import`
to read anew. WORK must not exist: the processes live there, so its path is the one that brokers and logs name.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from cluster import night_of_consumers, night_of_refusals
from cluster.clients import client_processes
from cluster.clusters import Cluster
from cluster.made_nights import Night
from cluster.night_recordings import captured, keep_logs, put_together, recorded
from cluster.night_truth import Truth

SCENARIOS = {"refusals": ("harbour", night_of_refusals), "consumers": ("dairy", night_of_consumers)}
# Brokers answer before the recorder asks first; consumers commit and the recorder polls before the end.
SETTLE_S = 12


def make(night_name: str, version: str, out: Path, work: Path) -> None:
    """Run the cluster of a night below `work`, and leave its recording and the truth at `out`."""
    name, scenario = SCENARIOS[night_name]
    cluster_name = f"{name}-{version.split('.')[0]}"
    kept = work / "kept"
    kept.mkdir(parents=True)
    cluster = Cluster(work / "cluster", version)
    truth = Truth(cluster_name, version)
    for _ in range(2):
        cluster.add_name_server()
    with scenario.brokers(cluster, {"brokerClusterName": cluster_name}):
        try:
            with captured(cluster, kept):
                cluster.start()
                with recorded(cluster, kept), client_processes(cluster, *scenario.CLIENTS) as clients:
                    night = Night(cluster, clients, truth)
                    scenario.set_up(night)
                    time.sleep(SETTLE_S)
                    scenario.run(night)
                    time.sleep(SETTLE_S)
                    night.stop_all()
                    time.sleep(SETTLE_S)
                    truth.event("end", "recording_ends")
        finally:
            cluster.stop()
    truth.write(out.with_name(f"{out.name}.truth.json"))
    keep_logs(cluster, kept)
    put_together(kept, out)


def main() -> int:
    """Make the night that the command line names."""
    parser = argparse.ArgumentParser(description="make a recorded night with known faults")
    parser.add_argument("night", choices=SCENARIOS)
    parser.add_argument("version", choices=["4.9.7", "5.3.3"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    make(arguments.night, arguments.version, arguments.out, arguments.work)
    shutil.rmtree(arguments.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
