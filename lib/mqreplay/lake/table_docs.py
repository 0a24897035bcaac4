"""docs/tables.md, out of the contracts: `python -m mqreplay.lake.table_docs > docs/tables.md`."""

from __future__ import annotations

from mqreplay.lake.contract import Column, Contract, load_contracts

HEAD = """# Tables

Made by `make docs` from the contracts in schemas/; do not edit. Every table is Delta, clustered as said, and readable
by delta-rs, polars and DuckDB too. Instants are TIMESTAMP in UTC.
"""


def render(contracts: dict[str, Contract]) -> str:
    """The page: each table's grain, key, clustering, columns, checks and expectations."""
    return "\n".join([HEAD, *[_table(c) for c in contracts.values()]])


def _table(contract: Contract) -> str:
    rows = [_row(c) for c in contract.columns]
    checks = [f"- CHECK `{text}`" for text in contract.checks.values()]
    rules = [f"- {rule['description']} (`{rule['type']}`)" for rule in contract.quality]
    return "\n".join(
        [
            f"## {contract.name}",
            "",
            contract.description + ".",
            f"Key: `{', '.join(contract.key)}`; clustered by `{', '.join(contract.clustered_by)}`.",
            "",
            "| column | type | null | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
            *checks,
            *rules,
            "",
        ]
    )


def _row(column: Column) -> str:
    meaning = column.description.replace("|", "\\|") + (f" ({column.unit})" if column.unit else "")
    return f"| {column.name} | {column.type} | {'yes' if column.nullable else ''} | {meaning} |"


if __name__ == "__main__":
    print(render(load_contracts()), end="")
