"""The commands, options, targets, jobs and links in the README and in docs/ exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest

from mqreplay.cli.command_line import parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]


def lines_to_type() -> list[tuple[str, str]]:
    """(page, command) of each line of a code block, and of each `command` in a sentence, without its comment."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        indented = re.findall(r"^ {4}(.*)", text, re.MULTILINE)
        inline = re.findall(r"`([^`\n]+)`", text)
        lines = [line for block in fenced for line in block.splitlines()] + indented + inline
        found += [(page.name, re.sub(r"\s+#.*", "", line).strip().removeprefix("$ ")) for line in lines]
    return found


def documented(pattern: str) -> list[tuple[str, str]]:
    return [(page, line) for page, line in lines_to_type() if re.match(pattern, line)]


def subcommands() -> dict[str, ArgumentParser]:
    (action,) = [a for a in parser()._actions if isinstance(a, _SubParsersAction)]
    return dict(action.choices)


def test_readme_has_the_two_commands() -> None:
    assert {"make demo", "make test"} <= {line for _, line in documented("make ")}


def test_the_demo_is_local_and_on_spark_if_asked() -> None:
    for words, engine in (([], "local"), (["ENGINE=spark"], "spark")):
        done = subprocess.run(
            ["make", "-n", "--no-print-directory", "demo", *words], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == f".venv/bin/mqreplay demo --engine {engine}"


def test_the_chinese_readme_has_all_of_the_english_one() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
    tables, links = r"gold\.[a-z_]+", r"\]\((docs/[^)]+\.md[^)]*)\)"
    assert set(re.findall(tables, english)) <= set(re.findall(tables, chinese))
    assert set(re.findall(links, english)) <= set(re.findall(links, chinese))
    typed = [
        {line for page, line in documented("(mqreplay|make) ") if page == name}
        for name in ("README.md", "README.zh.md")
    ]
    assert typed[0] <= typed[1]


def test_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = [(page, word) for page, line in documented("make ") for word in shlex.split(line.partition("&&")[0])[1:]]
    assert [(page, word) for page, word in named if "=" not in word and word not in targets] == []


def test_commands_and_their_options_exist() -> None:
    wrong = []
    for page, line in documented(r"(\.venv/bin/)?mqreplay [a-z]"):
        _, names, *rest = shlex.split(line)
        known = subcommands()
        options = {word.strip("[]").split("=")[0] for word in rest if word.lstrip("[").startswith("--")}
        for name in names.split("|"):
            if name not in known or not options <= set(known[name]._option_string_actions):
                wrong.append((page, line))
    assert wrong == []


def test_jobs_exist() -> None:
    jobs = [(page, job) for page, line in documented(r".*\bspark-submit ") for job in re.findall(r"\S+\.py", line)]
    assert [(page, job) for page, job in jobs if not (ROOT / job).is_file()] == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub makes them of its headings."""
    found = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not link.startswith("https://") and (not target.exists() or (anchor and anchor not in headings(target))):
            wrong.append(link)
    assert wrong == []


def test_pages_that_code_names_exist() -> None:
    folders = ("lib", "tests", "tools", "conf", "schemas", "jobs")
    files = [each for folder in folders for each in (ROOT / folder).rglob("*")]
    named = {
        (str(each.relative_to(ROOT)), name)
        for each in files
        if each.suffix in (".py", ".toml", ".yaml", ".html", ".service", ".cron")
        for name in re.findall(r"\bdocs/[\w/-]+\.md", each.read_text(encoding="utf-8"))
    }
    assert named
    assert [(file, name) for file, name in sorted(named) if not (ROOT / name).is_file() and "x.md" not in name] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "index.md"]
    assert [name for name in pages if f"]({name})" not in index] == []


@pytest.mark.parametrize("page", ["docs/reliability.md", "SECURITY.md"])
def test_what_opens_connections_is_named(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if "--metrics-port" in line)
    promise = "\n".join(lines[start - 1 : start + 2])
    assert [word for word in ("record", "stores", "Spark", "--notify") if word not in promise] == []


def test_the_set_up_shows_its_steps() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "setup"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    steps = [(int(number), int(of)) for number, of in re.findall(r"\b(\d) of (\d): \w+ing ", done.stdout)]
    assert steps == [(number, steps[0][1]) for number in range(1, steps[0][1] + 1)]
    assert len(steps) > 1
    (packages,) = [line for line in done.stdout.splitlines() if "requirements/runtime.txt |" in line]
    assert "--quiet" not in packages, "nothing is counted"
    assert re.search(r"\$n of \d+ packages|of \d+ packages", packages)
