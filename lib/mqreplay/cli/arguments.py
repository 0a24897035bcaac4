"""Options that several commands have."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from mqreplay.language.language import LANGUAGES, Language, language
from mqreplay.words.errors import InputError

if TYPE_CHECKING:
    from mqreplay.engines.choice import Choice
    from mqreplay.night.catalog import Catalog
    from mqreplay.settings import Settings

WAREHOUSE = "MQREPLAY_WAREHOUSE"
LANG = "MQREPLAY_LANG"
DEFAULT_ENGINE = "spark under spark-submit, with --catalog, or if the settings name a Spark master; else local"
FORMS = ("table", "line", "csv", "json")
FORMATS = (
    "how rows are printed (%(default)s); line: one column a line, for wide tables. Control and invisible characters "
    "are shown as escapes such as \\x1b; in csv, "
    "text that a spreadsheet would run as a formula (it begins with = + - or @) gets an apostrophe before it; "
    "json gives every value exactly"
)


def add_warehouse(command: argparse.ArgumentParser) -> None:
    """Add --warehouse, which an environment variable may give in its place."""
    default = os.environ.get(WAREHOUSE)
    command.add_argument(
        "--warehouse",
        required=not default,
        default=default or None,
        metavar="DIR",
        help=f"folder of the tables (default: the environment variable {WAREHOUSE})",
    )


def add_conf(command: argparse.ArgumentParser) -> None:
    """Add --conf."""
    command.add_argument("--conf", metavar="FILE", help="settings over the shipped ones")


def add_tables(command: argparse.ArgumentParser) -> None:
    """Add --warehouse and --conf."""
    add_warehouse(command)
    add_conf(command)


def add_json(command: argparse.ArgumentParser, text: str = "print one JSON object") -> None:
    """Add --json."""
    command.add_argument("--json", action="store_true", help=text)


def add_cluster(command: argparse.ArgumentParser, text: str = "the cluster, where the warehouse has several") -> None:
    """Add --cluster."""
    command.add_argument("--cluster", metavar="NAME", help=text)


def settings_of(args: argparse.Namespace, conf: str | None = None) -> Settings:
    """Return the settings of --conf, or of the file ``conf`` without it, in the language of --lang."""
    from mqreplay.settings import load_settings

    return load_settings(args.conf or conf).in_language(getattr(args, "lang", None))


def words_of(args: argparse.Namespace) -> Language:
    """Return the language of --lang or the settings."""
    return language(settings_of(args).report.language)


def add_lang(command: argparse.ArgumentParser) -> None:
    """Add --lang, which an environment variable may give in its place."""
    command.add_argument(
        "--lang",
        type=_lang,
        default=os.environ.get(LANG) or None,
        metavar="{" + ",".join(LANGUAGES) + "}",
        help=f"language of texts: en, or zh (Chinese). Tables, --json and csv are in English (default: {LANG}, or en)",
    )


def _lang(text: str) -> str:
    if text not in LANGUAGES:
        raise argparse.ArgumentTypeError(f"{text!r} is not {' or '.join(LANGUAGES)}")
    return text


def add_engine(command: argparse.ArgumentParser, default: str = DEFAULT_ENGINE) -> None:
    """Add --engine. ``default`` is what the help says of a run without it."""
    command.add_argument(
        "--engine",
        choices=("spark", "local"),
        help=f"what runs the tasks: local, processes of this machine without Java; or spark. Default: {default}",
    )


def choice_of_engine(args: argparse.Namespace, settings: Settings) -> Choice:
    """Return the engine that a command runs on, and why."""
    from mqreplay.engines.choice import chosen_engine, is_submitted  # polars

    return chosen_engine(
        args.engine,
        settings.spark,
        submitted=is_submitted(),
        catalog=getattr(args, "catalog", None) is not None,
    )


def add_catalog(command: argparse.ArgumentParser) -> None:
    """Add --catalog and --prefix, of tables that have names."""
    text = "read and write the tables by names in this catalog of the Spark session, such as spark_catalog"
    command.add_argument("--catalog", metavar="NAME", help=text)
    add_prefix(command)


def catalog_of(args: argparse.Namespace) -> Catalog | None:
    """Return the catalog of the tables; None without --catalog. Raises InputError for --prefix alone."""
    from mqreplay.night.catalog import Catalog

    name, prefix = getattr(args, "catalog", None), getattr(args, "prefix", "")
    if name is None and prefix:
        raise InputError("--prefix is for names in a catalog: give --catalog, too")
    return None if name is None else Catalog(name, prefix)


def add_prefix(command: argparse.ArgumentParser) -> None:
    """Add --prefix, of the names in a catalog."""
    command.add_argument(
        "--prefix",
        metavar="TEXT",
        default="",
        help="prefix of each database name in the catalog: orders_ gives orders_gold",
    )


def add_format(command: argparse.ArgumentParser) -> None:
    """Add --format."""
    command.add_argument("--format", choices=FORMS, default="table", help=FORMATS)
