"""`mqreplay mcp`: findings, explanations, states, suppositions and queries as tools of the Model Context Protocol."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mqreplay import __version__
from mqreplay.mcp.query import bounded_answer, plain
from mqreplay.words.errors import InputError, MqreplayError, arguments_named

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from mqreplay.settings import Settings

INSTRUCTIONS = (
    "mqreplay has replayed the decisions of an Apache RocketMQ cluster from recordings of its nights. Begin with "
    "findings(), then explain(finding_id). at() shows what was true at an instant in UTC, or what changed up to a "
    "second one; compare() compares two days; ready() says whether a broker may be restarted; whatif() shows what "
    "would have been with another setting; advise() names settings that would have removed findings of a group. "
    "sql() reads all tables; tables() lists them, columns() describes one. A decision is judged agree, differ or "
    "undetermined: undetermined means that the evidence is missing, not that all was well. What has no value is "
    "left out of answers."
)
MOST_FINDINGS = 100


def serve(root: str, settings: Settings) -> None:
    """Serve a warehouse until stdin ends."""
    server(root, settings).run("stdio")


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
    of_nights = (tools.findings, tools.explain, tools.at, tools.compare, tools.ready, tools.whatif, tools.advise)
    for tool in (*of_nights, tools.sql, tools.tables, tools.columns):
        made.tool(annotations=reads)(_answering(tool))
    return made


def _answering(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tool with compact answers, and errors that say why: the server hides the texts of all others."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import CallToolResult, TextContent

    @contextmanager
    def with_reason() -> Iterator[None]:
        try:
            with arguments_named():
                yield
        except MqreplayError as error:
            raise ToolError(str(error)) from None

    def compact(value: Any) -> CallToolResult:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=value)

    @functools.wraps(tool)
    def called(*args: Any, **options: Any) -> Any:
        with with_reason():
            return compact(tool(*args, **options))

    @functools.wraps(tool)
    async def awaited(*args: Any, **options: Any) -> Any:
        with with_reason():
            return compact(await tool(*args, **options))

    return awaited if inspect.iscoroutinefunction(tool) else called


class Tools:
    """The tools: each returns plain values, as --json of the command of the same name prints them, without nulls."""

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
        """List findings, the most severe first; severity is the lowest: info, warning or critical. Instants in UTC.

        nights has the verdict on the last night of each cluster, and what its recording cannot show.
        """
        from mqreplay.answers.findings import clusters_of, findings, instant, last_recorded
        from mqreplay.answers.outcome import last_nights
        from mqreplay.lake.warehouse import Warehouse

        asked = {"kind": kind, "consumer_group": group, "topic": topic, "broker_name": broker, "cluster": cluster}
        names = {column: [] if value is None else [value] for column, value in asked.items()}
        last = last_recorded(Warehouse(self._root), names["cluster"])
        span = instant(since, "since", last), instant(until, "until", last)
        frame = findings(self._root, names, severity, *span, self._settings)
        rows = frame.head(MOST_FINDINGS).drop("evidence").to_dicts()
        nights = last_nights(self._root, names["cluster"] or clusters_of(Warehouse(self._root)))
        return _answer({"nights": nights, "count": frame.height, "findings": rows})

    def explain(self, finding_id: str, cluster: str | None = None, limit: int = 20) -> dict[str, Any]:
        """Explain a finding: its rule, evidence in time order, cause and effects. limit: rows of evidence."""
        from mqreplay.answers.explanation import explain
        from mqreplay.lake.warehouse import Warehouse

        explained = explain(Warehouse(self._root), finding_id, cluster, limit, settings=self._settings)
        return _answer(explained.as_plain())

    def at(
        self,
        time: str,
        to: str | None = None,
        group: str | None = None,
        broker: str | None = None,
        cluster: str | None = None,
    ) -> dict[str, Any]:
        """Show what was true at an instant in UTC (02:51 or 2026-11-21T02:51:30): brokers, members, owners, lag.

        to: show what changed from time to this instant, and why, as an outage and its steps.
        """
        from mqreplay.answers.changes import changes_between
        from mqreplay.answers.state import state_at
        from mqreplay.lake.row_filter import plain_rows
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.moment.instant import recorded_around

        night, instant = recorded_around(Warehouse(self._root), cluster, time, "time")
        if to is None:
            return _answer(state_at(night, instant, group, broker).as_plain())
        since, until = night.span(time, to, "time", "to")
        changes = plain_rows(changes_between(night, since, until, group, broker))
        return _answer({"cluster": night.cluster, "from": since, "to": until, "changes": changes})

    def compare(self, before: str, after: str, cluster: str | None = None) -> dict[str, Any]:
        """Compare two judged days, such as 2026-11-20: findings that are new, gone or recur; groups and settings."""
        from mqreplay.answers.compare import compare_days
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.moment.instant import recorded

        return _answer(compare_days(recorded(Warehouse(self._root), cluster), before, after).as_plain())

    def ready(self, broker: str, id: int = 0, at: str | None = None, cluster: str | None = None) -> dict[str, Any]:
        """Say whether a broker may be restarted: yes, no or undetermined, and why.

        at: an instant in UTC, in place of the last recorded one. id: its broker id; 0 is the master.
        """
        from mqreplay.answers.ready import required_readiness
        from mqreplay.lake.warehouse import Warehouse
        from mqreplay.moment.instant import recorded_around

        night, instant = recorded_around(Warehouse(self._root), cluster, at, "at")
        return _answer(required_readiness(night, broker, id, instant, self._settings).as_plain())

    def advise(self, group: str, day: str | None = None, cluster: str | None = None) -> dict[str, Any]:
        """Name settings that would have removed findings of a consumer group, and notes on what none removes."""
        from mqreplay.suppose.advise import advise

        return _answer(advise(self._root, self._settings, group, day, cluster).as_plain())

    def whatif(
        self,
        set: list[str] | None = None,
        broker: str | None = None,
        group: str | None = None,
        consumers: int | str | None = None,
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
        had (2, -1 or "+1"). queues of a topic on each broker. lose_master of a broker, reset_to an instant, drain a
        backlog.
        """
        from mqreplay.suppose.options import supposed
        from mqreplay.suppose.what_if import what_if

        named = {"broker": broker, "group": group, "topic": topic, "lose_master": lose_master, "cluster": cluster}
        numbers = {"consumers": consumers, "queues": queues, "drain": drain}
        asked = supposed(set=set or [], **numbers, **named, reset_to=reset_to, at=at, day=day)
        return _answer(what_if(self._root, self._settings, asked).as_plain())

    async def sql(self, query: str) -> dict[str, Any]:
        """Run a SELECT of DuckDB over the tables, such as gold.finding: at most 200 rows, 1 MB and 50 s.

        Of more rows, the first 200 are returned, without their count.
        """
        answer = await bounded_answer(self._root, query, self._settings)
        return {name: value for name, value in answer.items() if value is not None}

    def tables(self) -> dict[str, str]:
        """List the tables with what a row of each is."""
        from mqreplay.lake.warehouse import Warehouse

        warehouse = Warehouse(self._root)
        return {name: warehouse.contracts[name].description for name in warehouse.contracts if warehouse.exists(name)}

    def columns(self, table: str) -> dict[str, str]:
        """Describe the columns of a table, such as gold.finding."""
        from mqreplay.lake.contract import load_contracts
        from mqreplay.words.similar import unknown_table

        contracts = load_contracts()
        if table not in contracts:
            raise InputError(unknown_table(table, contracts))
        return {column.name: f"{column.type}: {column.comment}" for column in contracts[table].columns}


def _answer(value: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = _without_nulls(plain(value))
    return answer


def _without_nulls(value: Any) -> Any:
    """Return a plain value without the names that have no value: what is not there is not known."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
