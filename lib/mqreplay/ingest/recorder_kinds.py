"""Kinds of files whose times are from the recorder's clock, not a client's."""

from __future__ import annotations

from mqreplay.decode.kinds import KINDS

OF_SNAPSHOTS = ("consumer_offset", "topics", "subscription_groups", "message_request_modes", "pop_orders")
BY_RECORDER = (*OF_SNAPSHOTS, *(kind.stem for kind in KINDS.values() if kind.by_recorder))
