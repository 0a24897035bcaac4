"""--catalog before a run: what is refused, so that no night is worked on in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.cli.command_line import main

NIGHT = ["nightly", "none", "--warehouse"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--catalog", "lake", "--engine", "local"],
            "--catalog needs Spark, which has the catalog; leave out --engine",
        ),
        (["--prefix", "orders_"], "--prefix is for names in a catalog: give --catalog, too"),
        (["--catalog", "a b"], "'a b' cannot name a catalog or database"),
        (["--catalog", "lake", "--prefix", "1"], "'1bronze' cannot name a catalog or database"),
    ],
)
def test_refused(options: list[str], message: str, tmp_path: Path, capsys) -> None:
    assert main([*NIGHT, str(tmp_path / "w"), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mqreplay: {message}")
    assert not (tmp_path / "w").exists()
