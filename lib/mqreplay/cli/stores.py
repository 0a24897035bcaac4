"""Let a command reach stores, if one of its folders is a URI."""

from __future__ import annotations

import argparse

from mqreplay.lake.files import is_remote


def use_stores(args: argparse.Namespace) -> None:
    """Apply the settings of --conf on how to reach stores. Raises SettingsError."""
    folders = [getattr(args, "warehouse", None), *getattr(args, "recordings", ()), *getattr(args, "files", ())]
    if any(folder and is_remote(folder) for folder in folders):
        from mqreplay.lake.storage import use_settings
        from mqreplay.settings import load_settings

        use_settings(load_settings(getattr(args, "conf", None)))
