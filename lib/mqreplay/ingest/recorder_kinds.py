"""Kinds of files whose times are from the recorder's clock, not a client's."""

from __future__ import annotations

from mqreplay.decode.kinds import FILE_KINDS, KINDS

BY_RECORDER = tuple(stem for stem, kind in FILE_KINDS.items() if kind.by_recorder)
OF_SNAPSHOTS = tuple(stem for stem in BY_RECORDER if stem not in KINDS)
