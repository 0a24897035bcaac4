"""The settings that would have removed findings of a group, in the terminal."""

from __future__ import annotations

from rich.text import Text

from mqreplay.language.language import Language, in_english
from mqreplay.suppose.advise import Advice, Advised
from mqreplay.terminal.console import padded, print_line, print_row, print_table, text_console
from mqreplay.words.printable import printable

HEAD = ("setting", "queues moved", "raises", "removes")


def print_advice(advised: Advised, where: str, words: Language | None = None) -> None:
    """Print the advice. ``where``: the options that name the cluster and the warehouse, for commands to copy."""
    words = words or in_english()
    console = text_console()
    number = len(advised.findings)
    findings = words.counted(number, "finding") if number else words.text("no findings")
    named = {"cluster": advised.cluster, "group": advised.group}
    head = words.filled("{cluster}: {group}, {findings} on {day}", **named, findings=findings, day=advised.day)
    print_line(console, head, "bold")
    kinds = {row["finding_id"]: f"{row['kind']} {row['finding_id'][:8]}" for row in advised.findings}
    if advised.advice:
        rows = [_row(each, advised.group, kinds, words) for each in advised.advice]
        print_table(console, [words.text(name) for name in HEAD], rows, indent=2)
        for each in advised.advice:
            for key, texts in each.rates.items():
                text = words.text("; ").join(map(words.text, texts))
                print_line(console, f"  {words.filled('{text}: {more}', text=kinds[key], more=text)}", "dim")
        if command := next((each.command for each in advised.advice if each.command), ""):
            text = words.filled("who would own which queue: {command}", command=f"{command}{where}")
            console.print(Text(f"  {printable(text)}", "dim"), soft_wrap=True)  # to copy
    if advised.notes:
        title = words.text("no setting of strategy, consumers or queues is shown to remove:")
        print_line(console, f"  {title}", "bold")
        width = max(len(kinds[each.finding_id]) for each in advised.notes)
        for note in advised.notes:
            shown = [f"{note.command}{where}"] if note.command else []
            for index, line in enumerate([*map(words.text, note.lines), *shown, words.text(note.next)]):
                name = Text(padded("" if index else kinds[note.finding_id], width + 2))
                print_row(console, Text(printable(line)), 2, name)
    if advised.assumption:
        text = words.filled("assumed of rates: {text}", text=words.text(advised.assumption))
        print_line(console, f"  {text}", "dim")


def _row(each: Advice, group: str, kinds: dict[str, str], words: Language) -> list[str]:
    low, high = each.moved_min, each.moved_max
    moved = f"{low}" if low == high else words.filled("{low} to {high}", low=low, high=high)
    text = words.filled("{n} of {m}", n=moved, m=each.queues)
    if each.new:
        text = words.filled("{text}, {more}", text=text, more=words.filled("{n} new", n=each.new))
    setting = words.text(each.setting.replace(f" in {group}", ""))
    raises = ", ".join(each.brings) or words.text("nothing")
    return [printable(cell) for cell in (setting, text, raises, ", ".join(kinds[key] for key in each.removes))]
