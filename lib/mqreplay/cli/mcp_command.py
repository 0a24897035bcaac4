"""`mqreplay mcp`: findings, explanations, states, suppositions and queries as tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mqreplay import __version__
from mqreplay.cli.arguments import add_conf, add_warehouse, with_examples
from mqreplay.cli.mcp_query import bounded_answer, plain
from mqreplay.errors import InputError, MqreplayError
from mqreplay.severity import SEVERITIES

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from mqreplay.settings import Settings

DESCRIPTION = (
    "Serve a warehouse to an agent by the Model Context Protocol, over stdin and stdout: tools for findings, "
    "explanations, states at an instant, suppositions and SQL. They read; nothing is changed."
)
EXAMPLES = with_examples("mqreplay mcp --warehouse warehouse/night")
INSTRUCTIONS = (
    "mqreplay has replayed the decisions of an Apache RocketMQ cluster from recordings of its nights. Begin with "
    "findings(), then explain(finding_id). at() shows what was true at an instant in UTC, whatif() what would have "
    "been with another setting. sql() reads all tables; tables() lists them, columns() describes one. A decision is "
    "judged agree, differ or undetermined: undetermined means that the evidence is missing, not that all was well."
)
MOST_FINDINGS = 100


def add(commands: Any) -> None:
    """Add the command."""
    text = "serve a warehouse to an agent: tools of the Model Context Protocol"
    command = commands.add_parser("mcp", help=text, description=DESCRIPTION, **EXAMPLES)
    add_warehouse(command)
    add_conf(command)


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Serve until stdin ends."""
    from mqreplay.lake.existing import require_warehouse

    require_warehouse(args.warehouse)
    server(args.warehouse, settings).run("stdio")


def server(root: str, settings: Settings) -> MCPServer[Any]:
    """Return the server with its tools. Raises InputError if the package mcp is missing."""
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise InputError("this command needs the package mcp: pip install 'mqreplay[mcp]'") from None
    made: MCPServer[Any] = MCPServer("mqreplay", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = Tools(root, settings)
    for tool in (tools.findings, tools.explain, tools.at, tools.whatif, tools.sql, tools.tables, tools.columns):
        made.tool(annotations=reads)(_with_reasons(tool))
    return made


def _with_reasons(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tool with errors that say why: the server hides the texts of all others."""
    from mcp.server.mcpserver.exceptions import ToolError

    @contextmanager
    def with_reason() -> Iterator[None]:
        try:
            yield
        except MqreplayError as error:
            raise ToolError(str(error)) from None

    @functools.wraps(tool)
    def called(*args: Any, **options: Any) -> Any:
        with with_reason():
            return tool(*args, **options)

    @functools.wraps(tool)
    async def awaited(*args: Any, **options: Any) -> Any:
        with with_reason():
            return await tool(*args, **options)

    return awaited if inspect.iscoroutinefunction(tool) else called


class Tools:
    """The tools: each returns plain values, as --json of the command of the same name prints them."""

    def __init__(self, root: str, settings: Settings) -> None:
        """Take the warehouse."""
        self._root, self._settings = root, settings

    def findings(
        self,
        kind: str | None = None,
        severity: str | None = None,
        group: str | None = None,
        topic: str | None = None,
        broker: str | None = None,
        cluster: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> dict[str, Any]:
        """List findings, the most severe first; severity is the lowest: info, warning or critical. Instants in UTC."""
        from mqreplay.cli.findings_command import findings, instant

        if severity is not None and severity not in SEVERITIES:
            raise InputError(f"severity is one of {', '.join(SEVERITIES)}")
        asked = {"kind": kind, "consumer_group": group, "topic": topic, "broker_name": broker, "cluster": cluster}
        names = {column: [] if value is None else [value] for column, value in asked.items()}
        span = instant(since, "since"), instant(until, "until")
        frame = findings(self._root, names, severity, *span, self._settings)
        rows = frame.head(MOST_FINDINGS).drop("evidence").to_dicts()
        return _answer({"count": frame.height, "findings": rows})

    def explain(self, finding_id: str, cluster: str | None = None, limit: int = 20) -> dict[str, Any]:
        """Explain a finding: its rule, evidence in time order, cause and effects. limit: rows of evidence."""
        from mqreplay.cli.explain import as_plain
        from mqreplay.cli.explanation import explain

        return _answer(as_plain(explain(self._root, finding_id, cluster, limit)))

    def at(
        self, time: str, group: str | None = None, broker: str | None = None, cluster: str | None = None
    ) -> dict[str, Any]:
        """Show what was true at an instant in UTC (02:51:30 or 2026-11-21T02:51:30): brokers, members, owners, lag."""
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.moment.instant import recorded
        from mqreplay.moment.state import state_at

        night = recorded(Warehouse(self._root), cluster)
        return _answer(state_at(night, night.instant(time, "time"), group, broker).as_plain())

    def whatif(
        self,
        set: list[str] | None = None,
        broker: str | None = None,
        group: str | None = None,
        consumers: int | None = None,
        queues: int | None = None,
        topic: str | None = None,
        lose_master: str | None = None,
        reset_to: str | None = None,
        drain: bool = False,
        at: str | None = None,
        day: str | None = None,
        cluster: str | None = None,
    ) -> dict[str, Any]:
        """Decide the night again with another setting.

        set: ratio=60 or slaveReadEnable=false of a broker, strategy=AVG of a group. consumers: how many more a group
        had. queues of a topic on each broker. lose_master of a broker, reset_to an instant, drain a backlog.
        """
        from mqreplay.cli.whatif_command import asked_by
        from mqreplay.cli.whatif_text import as_plain
        from mqreplay.night.what_if import what_if

        named = {"broker": broker, "group": group, "topic": topic, "lose_master": lose_master, "cluster": cluster}
        times = {"reset_to": reset_to, "at": at, "day": day}
        asked = asked_by(set or [], consumers, queues=queues, drain=drain, **named, **times)
        return _answer(as_plain(what_if(self._root, self._settings, asked)))

    async def sql(self, query: str) -> dict[str, Any]:
        """Run a SELECT of DuckDB over the tables, such as gold.finding: at most 200 rows, 1 MB and 50 s.

        Of more rows, the first 200 are returned, without their count.
        """
        return await bounded_answer(self._root, query, self._settings)

    def tables(self) -> dict[str, str]:
        """List the tables with what a row of each is."""
        from mqreplay.lake.warehouse import Warehouse

        warehouse = Warehouse(self._root)
        return {name: warehouse.contracts[name].description for name in warehouse.contracts if warehouse.exists(name)}

    def columns(self, table: str) -> dict[str, str]:
        """Describe the columns of a table, such as gold.finding."""
        from mqreplay.lake.contract import load_contracts
        from mqreplay.lake.similar import unknown_table

        contracts = load_contracts()
        if table not in contracts:
            raise InputError(unknown_table(table, contracts))
        return {column.name: f"{column.type}: {column.comment}" for column in contracts[table].columns}


def _answer(value: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(each) for name, each in value.items()}
