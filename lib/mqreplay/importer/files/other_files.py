"""Files, lines and outputs that no decision uses: what each is, and what to give instead, by unused.toml."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

_NO_DECISION: Final = "no decision uses it"
_BAK: Final = re.compile(r"\.(?:bak|tmp)$")
# Folders with messages and indexes.
_OF_MESSAGES: Final = frozenset(
    {
        *("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index", "transaction"),
        *("timerwheel", "timerlog", "compaction", "tieredstore"),
    }
)
_OF_TOOLS: Final = frozenset({".git", "__MACOSX"})
HEAD_BYTES: Final = 65_536  # of a file whose kind its text shows


_MOST_SHOWN: Final = 5
_LONGEST_SHOWN: Final = 200  # characters


class UnusedKind(NamedTuple):
    """What a file or an output is, what to give instead of it, and what its text shows, by patterns."""

    pattern: re.Pattern[str]
    what: str
    instead: str
    shows: tuple[tuple[re.Pattern[str], str], ...]

    @property
    def words(self) -> str:
        """Return what it is, and what to give instead."""
        return f"{self.what}; give {self.instead}" if self.instead else self.what

    def words_of(self, text: str) -> str:
        """Return the words, with what a text of this kind shows: the largest numbers first."""
        matches = [(match, words) for pattern, words in self.shows for match in pattern.finditer(text[:HEAD_BYTES])]
        matches.sort(key=lambda each: -int(each[0].groupdict().get("n") or 0))
        shown = [*dict.fromkeys(words.format(*match.groups())[:_LONGEST_SHOWN] for match, words in matches)]
        return f"{self.words}. It shows: {'; '.join(shown[:_MOST_SHOWN])}" if shown else self.words


_RECORDS: Final = tomllib.loads(files(__package__).joinpath("unused.toml").read_text(encoding="utf-8"))["file"]


def _kinds(by: str, before: str = "^") -> tuple[UnusedKind, ...]:
    return tuple(
        UnusedKind(
            re.compile(f"{before}(?:{record[by]})", re.MULTILINE),
            record["what"],
            record.get("instead", ""),
            tuple((re.compile(pattern, re.MULTILINE), words) for pattern, words in record.get("shows", ())),
        )
        for record in _RECORDS
        if by in record
    )


_FILES, _LOGS, _TEXTS, _COMMANDS = (_kinds(by) for by in ("name", "log", "text", "command"))
_THREADS: Final = _kinds("thread", r"\b")
# Parts of messages, and how their lines are counted.
UNUSED_MESSAGES: Final = tuple(
    (part, record["what"] + (f" (give {record['instead']})" if "instead" in record else ""))
    for record in _RECORDS
    for part in record.get("parts", ())
)
_WORD: Final = re.compile("[A-Za-z]+")
_INNER_WORD: Final = re.compile("(?<=[^A-Za-z])[A-Za-z]+(?=[^A-Za-z])")


def _places_by_word() -> Mapping[str, Sequence[int]]:
    """Return the parts by a word that their messages have: to look each part up in each line takes longer."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, (part, _) in enumerate(UNUSED_MESSAGES):
        words = _INNER_WORD.findall(part) or _WORD.findall(part)  # at its edges a part may have half a word
        places[min(words, key=lambda word: (len(places.get(word, ())), -len(word)))].append(place)
    return places


_PLACES: Final = _places_by_word()


def _named(kinds: Sequence[UnusedKind], name: str) -> UnusedKind | None:
    return next((kind for kind in kinds if kind.pattern.fullmatch(name)), None)


def why_in_folder(folders: Sequence[str]) -> str | None:
    """Return what the files in these folders are if no decision uses them; None for other folders.

    >>> why_in_folder(("store", "commitlog"))
    'no decision uses it: messages or an index of a store'
    """
    if _OF_MESSAGES.intersection(folders):
        return f"{_NO_DECISION}: messages or an index of a store"
    if ".rocketmq_client_go" in folders:
        return "it is of a broadcasting client of Go; import reads the offsets of Java clients (offsets.json)"
    return f"{_NO_DECISION}: a file of another tool" if _OF_TOOLS.intersection(folders) else None


def why_not_used(name: str) -> str | None:
    """Return what a file is that no decision uses, from its name; None for any other file.

    >>> why_not_used("tieredStoreMetadata.json.bak"), why_not_used("topics.json")
    ('no decision uses it: what a broker moved into tiered storage', None)
    """
    kind = _named(_FILES, _BAK.sub("", name))
    return None if kind is None else f"{_NO_DECISION}: {kind.words}"


def why_not_of_config(parts: Sequence[str]) -> str | None:
    """Return why an unknown file of a store's config folder is not used; None for a file elsewhere.

    >>> why_not_of_config(("store", "config", "x.json"))
    "no decision uses it: a file of a broker's config folder that mqreplay does not know"
    """
    is_of_config = len(parts) >= 2 and parts[-2] == "config" and _BAK.sub("", parts[-1]).endswith(".json")
    return f"{_NO_DECISION}: a file of a broker's config folder that mqreplay does not know" if is_of_config else None


def unused_log(base: str) -> UnusedKind | None:
    """Return which log of RocketMQ has a name (without rotation) that import does not need; None for any other.

    >>> unused_log("controller.log").what, unused_log("broker.log")
    ("a controller's log of elections, of which these lines show none", None)
    """
    return _named(_LOGS, base.partition(".")[0])


@lru_cache(maxsize=1024)
def log_of_thread(thread: str) -> UnusedKind | None:
    """Return which log of RocketMQ a line is of, by its thread or logger, if no message in it says more.

    >>> log_of_thread("WARN TransactionalMessageCheckService").what
    'a broker\'s log of transactions: which it checked, and which a producer rolled back or left open'
    >>> log_of_thread("INFO main")
    """
    return next((kind for kind in _THREADS if kind.pattern.search(thread)), None)


def unused_message(message: str) -> str | None:
    """Return how a message that no decision uses is counted; None for any other message.

    >>> unused_message("PULL_OFFSET_MOVED:none correction. topic=t, groupId=g, requestOffset=7, suggestBrokerId=1")
    'pulls outside the range of a queue that a broker did not correct'
    """
    places = {place for word in _WORD.findall(message) for place in _PLACES.get(word, ())}
    return next((UNUSED_MESSAGES[place][1] for place in sorted(places) if UNUSED_MESSAGES[place][0] in message), None)


def unused_text(head: str) -> UnusedKind | None:
    r"""Return the kind of a file that no decision uses, from its first lines; None for an unknown one.

    >>> unused_text("2021-11-04 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM\n").what[:24]
    'a thread dump of a JVM ('
    """
    return next((kind for kind in _TEXTS if kind.pattern.search(head)), None)


def unused_command(command: str, lines: Iterable[str] = ()) -> str | None:
    """Return what an output of mqadmin is that no decision uses, and what it shows; None for an unknown command.

    >>> unused_command("allocateMQ").partition("; ")[2]
    'give the output of consumerStatus -g GROUP -i CLIENT of each client'
    """
    kind = _named(_COMMANDS, command)
    return None if kind is None else kind.words_of("\n".join(lines))
