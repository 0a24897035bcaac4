"""The entries of the Chinese catalogue, one by one."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib.resources import files
from itertools import count

import pytest

from each_case import for_each
from language.chinese import ZH
from mqreplay.language.language import fields

FILES = {
    path.name: tomllib.loads(path.read_text("utf-8"))
    for path in files("mqreplay.language").joinpath("zh").iterdir()
    if path.name.endswith(".toml")
}
SENTENCES = [each for entries in FILES.values() for each in entries.items() if isinstance(each[1], str)]
TEMPLATES = [each for entries in FILES.values() for each in entries.get("templates", {}).items()]  # code fills them in
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# ASCII marks between Chinese, or between a value and Chinese.
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff}]\s*[,;:?!]\s*[\u4e00-\u9fff]|[\u4e00-\u9fff]\.(?:\s|$)")
COMMANDS = re.compile(r"`[^`]*`")
FIELD = re.compile(r"\{(\w+)(?::d|!t|!l)?\}")
ENDS = {".": "。", "?": "？", "!": "！"}
KNOWN = "agree"  # a text for fields that are translated themselves


def _plain(sentence: str) -> str:
    return FIELD.sub(r"{\1}", sentence)


def _has_only_names(text: str, english: str) -> bool:
    """Return whether all words of a text are in the English one: "NameServer {address}" of "name server {address}"."""
    joined = english.lower().replace(" ", "")
    return all(word.lower() in joined for word in re.findall(r"[A-Za-z]+", FIELD.sub("", text)))


@for_each([*SENTENCES, *TEMPLATES])
def test_an_entry_is_whole(english: str, text: str) -> None:
    assert fields(english).keys() == fields(text).keys()
    assert not any(fields(text).values()), "the translation only fills values in"
    assert CHINESE.search(text) or _has_only_names(text, english), "not Chinese, and not names alone"
    assert not HALF_WIDTH.search(COMMANDS.sub("`", text)), "a half-width mark in Chinese text"
    assert COMMANDS.findall(_plain(english)) == COMMANDS.findall(text)


@for_each(SENTENCES)
def test_a_sentence_ends_as_its_translation_does(english: str, text: str) -> None:
    """With another end, the sentence is never found."""
    if english[-1] in ENDS:
        assert text[-1] == ENDS[english[-1]]


@pytest.mark.parametrize("entries", [SENTENCES, TEMPLATES], ids=["sentences", "templates"])
def test_nothing_is_there_twice(entries: list[tuple[str, str]]) -> None:
    times = Counter(english if entries is TEMPLATES else english.rstrip(".?!") for english, _ in entries)
    assert [english for english, number in times.items() if number > 1] == []


OF_FINDINGS = list(FILES["known_issues.toml"].items())


@for_each([each for each in OF_FINDINGS if fields(each[0])])
def test_a_filled_sentence_finds_its_own_translation(english: str, text: str) -> None:
    """No entry takes the sentence of another one, and values are kept."""
    numbers = count(11)
    values = {
        name: {"d": str(next(numbers)), "t": KNOWN, "l": KNOWN}.get(kind, f"name{next(numbers)}")
        for name, kind in fields(english).items()
    }
    shown = {name: ZH.text(KNOWN) if value == KNOWN else value for name, value in values.items()}
    finished = _plain(english).format_map(values).replace("(s)", "s")
    assert ZH.text(finished) == text.format_map(shown)
