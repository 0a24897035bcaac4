"""RocketMQ's own JARs. `python -m cluster.artefacts` resolves both versions."""

from __future__ import annotations

import sys

from java_artefacts import Artefacts, resolve_all

# SHA-256 of the artefacts that the tests name. Ivy resolves what these depend on.
ARTEFACTS = {
    "5.3.3": {
        "rocketmq-namesrv": "b6d6f8b61664a358b7cf517aa8981e5e370bdee3eabe137b20e1f253c8b19fb0",
        "rocketmq-broker": "c3a5ee362ce2bf744d88057d6d9e53796e56aa42b9867ef31fc0b102dd01c27e",
        "rocketmq-client": "e15c141ac16812d927c6d4fb17458040304fcef472db11745e670f33bc967fb2",
        "rocketmq-tools": "61d182fabc71c2a9dc69f31b7d40efc6d10a8b7ad2f6dc05caeb9c603d9273e3",
    },
    "4.9.7": {
        "rocketmq-namesrv": "776fa2ecee8af1e3802ee27e6cbc4ac337baabdada80ebd5f68c58f35b94771c",
        "rocketmq-broker": "5b00b38044312fa567a8c5a59270f70ed1707076bbfb39b85d726dff33f780e3",
        "rocketmq-client": "fa1e89c80c2a52fb042711aad47c47d42a1ef53dada2a047a7e6c8eaec42fa87",
        "rocketmq-tools": "e38c9f7ea1522f9a255c0909f731a12f6b2848d30810e3ecffa19239970a64ef",
    },
}
ROCKETMQ = {
    version: Artefacts(f"rocketmq/{version}", "org.apache.rocketmq", version, digests)
    for version, digests in ARTEFACTS.items()
}


def class_path(version: str) -> list[str]:
    """Return the JARs of a version. Resolve them if they are not there. Raise ArtefactError."""
    return ROCKETMQ[version].class_path()


if __name__ == "__main__":
    sys.exit(resolve_all(ROCKETMQ.values()))
