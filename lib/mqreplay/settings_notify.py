"""The section [notify] of the settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqreplay.settings_records import setting, table


@dataclass(frozen=True)
class NotifySettings:
    """Messages about findings, of `nightly` and of `nightly --watch`. --notify on the command line has precedence."""

    urls: list[str] = field(
        default_factory=list,
        metadata=table(
            "addresses of channels as apprise writes them, or alertmanager://HOST:9093; none: no messages",
            "To send messages to addresses without secrets, such as Alertmanager's.",
        ),
    )
    file: str = setting(
        "",
        "",
        "file with one such address a line; only its owner should be able to read it",
        "To send messages to addresses that contain a secret.",
    )
    severity: str = setting(
        "warning",
        "",
        "least severity that is sent: info, warning or critical",
        "To hear of critical findings only.",
    )
    messages: int = setting(
        20,
        "message",
        "messages of a run to a channel about a cluster; one more counts the others",
        "To allow more or fewer messages after a bad night.",
        least=1,
        most=1000,
    )
    page: str = setting(
        "",
        "",
        "address under which the folder report/ of the warehouse is served; empty: links are paths",
        "When a web server serves the pages.",
    )
