from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqreplay.cli.doctor.verdict import AROUND, place_of, spelled

TEXTS = st.text("ab \n\té€𝄞\x00\u202e", max_size=200)


@given(TEXTS, TEXTS)
def test_a_place_between_two_texts(past: str, rest: str) -> None:
    place = place_of((past + rest).encode(), len(past.encode()))
    assert place.byte == len(past.encode())
    assert place.character == len(past)
    assert place.line == past.count("\n") + 1
    assert place.column == len(past.split("\n")[-1]) + 1
    assert place.before == ("…" if len(past) > AROUND else "") + spelled(past[-AROUND:])
    shown = spelled(rest[:AROUND])
    end = "…" if len(rest) > AROUND else " ⟨end⟩" if rest else "⟨end⟩"
    assert place.after == shown + end


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_anywhere_give_what_can_be_printed(data: bytes, byte: int) -> None:
    place = place_of(data, byte)
    assert 0 <= place.byte <= len(data)
    assert place.shown.isprintable()
    place.shown.encode("utf-8")


@given(st.text())
def test_spelling_twice_changes_nothing(text: str) -> None:
    assert spelled(spelled(text)) == spelled(text)
    assert spelled(text).isprintable()
