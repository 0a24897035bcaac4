"""The thresholds and severities of consumer groups' own, from the settings."""

from __future__ import annotations

from difflib import get_close_matches

from mqreplay.errors import SettingsError
from mqreplay.findings.by_group import STUCK_S, GroupLimits
from mqreplay.findings.registry import KINDS
from mqreplay.settings import Settings
from mqreplay.settings_findings import SEVERITIES_OF_GROUP


def group_limits(settings: Settings) -> list[GroupLimits]:
    """Return what [findings.groups] sets, in its order.

    Raises SettingsError for an unknown kind, and for a shorter stuck_s than the general one: shorter standstills are
    not looked for.
    """
    found = []
    for pattern, keys in settings.findings.groups.items():
        where = f'{settings.source[-1]}: [findings.groups."{pattern}"]' if settings.source else f"group {pattern}"
        severities = dict(keys.get(SEVERITIES_OF_GROUP, {}))
        for kind in severities:
            if kind not in KINDS:
                near = get_close_matches(kind, KINDS, 1)
                raise SettingsError(f"{where} has no kind {kind}{f'; did you mean {near[0]}?' if near else ''}")
        limits = {name: value for name, value in keys.items() if name != SEVERITIES_OF_GROUP}
        least = settings.findings.stuck_s
        if limits.get(STUCK_S, least) < least:
            raise SettingsError(f"{where} {STUCK_S} must be at least {least}, that of [findings]; lower that one, too")
        found.append(GroupLimits(pattern, limits, severities))
    return found
