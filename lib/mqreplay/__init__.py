"""mqreplay replays the decisions of an Apache RocketMQ cluster and reports what went wrong.

>>> import mqreplay
>>> replay = mqreplay.open("warehouse/night")  # doctest: +SKIP
>>> replay.findings(severity="critical")       # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqreplay.notebook.replay import Replay

__version__ = "0.2.0"


def open(warehouse: str, cluster: str | None = None, conf: str | None = None) -> Replay:
    """Open a warehouse to read its findings, tables and answers, in a script or a notebook. Nothing is changed.

    ``warehouse``: folder or URI, as of --warehouse. ``cluster``: the one that is asked about, where there are several.
    ``conf``: a settings file, as of --conf. Raises mqreplay.words.errors.InputError.
    """
    # By its name: every room imports this package, and none of them may depend on notebooks.
    opened: Replay = import_module("mqreplay.notebook.replay").Replay(warehouse, cluster, conf)
    return opened
