"""Files read whole: what the doctor says of each way to be broken, and what a broker would make of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.cli.doctor.files import examine_file
from mqreplay.cli.doctor.on_load import TORN
from mqreplay.cli.doctor.verdict import Verdict
from mqreplay.core.consumer_offset_manager import OffsetTable
from mqreplay.core.version import BROKER_4
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.words.errors import DecodeError, InputError, RocketMQError
from oracles.fastjson.consumer_offset import decode_consumer_offset as decode_as_a_broker
from oracles.offset_file import encode

WHOLE = b'{"offsetTable":{"orders@pay":{0:56,1:57},"orders@ship":{0:9}}}'
SAMPLES = Path(__file__).parents[2] / "decode" / "data"


def examined(folder: Path, data: bytes, bak: bytes | None = None, name: str = "consumerOffset.json") -> Verdict:
    (folder / name).write_bytes(data)
    if bak is not None:
        (folder / f"{name}.bak").write_bytes(bak)
    return examine_file(str(folder / name))


def lines(verdict: Verdict, what: str) -> list[str]:
    return [words for each, words in verdict.lines if each == what]


def test_a_whole_file_is_counted(tmp_path: Path) -> None:
    verdict = examined(tmp_path, WHOLE)
    assert verdict.whole
    assert lines(verdict, "holds") == ["3 queues of 2 keys topic@group"]
    assert verdict.as_dict()["entries"] == 3
    assert {"error", "broker", "mend", "bak"}.isdisjoint(verdict.as_dict())


def test_a_torn_file_the_broker_falls_back_on_its_bak(tmp_path: Path) -> None:
    verdict = examined(tmp_path, WHOLE[:33], WHOLE)
    assert not verdict.whole
    assert lines(verdict, "strictly") == ["torn: cut short where ',' or '}' should follow"]
    assert lines(verdict, "place") == ["line 1, character 34 of it; byte 33 of 33"]
    assert lines(verdict, "text") == ['{"offsetTable":{"orders@pay":{0:5 ▶ ⟨end⟩']
    assert lines(verdict, "its .bak") == ["whole: 3 queues of 2 keys topic@group"]
    [answer] = lines(verdict, "broker")
    assert answer == "4.9 and 5.3: refuses it, and takes the .bak: 3 queues of 2 keys topic@group"
    start = {"starts": True, "source": ".bak", "refusal": "refuses it", "entries": 3, "keys": 2}
    assert verdict.facts["broker"] == {"4.9": start, "5.3": start}
    assert lines(verdict, "mend")[0].startswith("take consumerOffset.json.bak, the last complete one")


def test_torn_without_a_bak_every_offset_is_lost(tmp_path: Path) -> None:
    verdict = examined(tmp_path, WHOLE[:33])
    assert lines(verdict, "broker")[0].endswith(
        "finds no .bak, and starts without offsets: groups begin by consumeFromWhere"
    )
    assert ".bak" not in lines(verdict, "mend")[0]


def test_both_broken_the_broker_does_not_start(tmp_path: Path) -> None:
    verdict = examined(tmp_path, WHOLE[:33], WHOLE[:9])
    assert lines(verdict, "its .bak")[0].startswith("broken too: torn: ")
    assert lines(verdict, "broker")[0].endswith("and does not start, because it refuses the .bak too")
    assert verdict.facts["broker"]["5.3"]["starts"] is False
    assert ".bak" not in lines(verdict, "mend")[0]


def test_an_empty_file_is_no_refusal(tmp_path: Path) -> None:
    verdict = examined(tmp_path, b"", WHOLE)
    assert lines(verdict, "broker") == [
        "4.9 and 5.3: finds nothing in it, and takes the .bak: 3 queues of 2 keys topic@group"
    ]
    assert lines(verdict, "text") == []


def test_a_file_that_fastjson_may_read_is_undetermined(tmp_path: Path) -> None:
    # A blank file is no offsets to 4.9, and refused by 5.3; of a name that stands twice, both drop the first value.
    twice = b'{"offsetTable":{"orders@pay":{0:56,1:57},"orders@pay":{0:56}}}'
    for data in (b"\n", twice, (SAMPLES / "topics-4.9.7.json").read_bytes()):
        verdict = examined(tmp_path, data, WHOLE)
        assert lines(verdict, "broker") == [
            "4.9 and 5.3: undetermined; if it refuses it, it takes the .bak: 3 queues of 2 keys topic@group"
        ]
        assert verdict.facts["broker"]["5.3"]["starts"] is None
    assert lines(examined(tmp_path, twice, twice), "broker")[0].endswith("it does not start if it refuses the .bak too")


def test_a_bak_is_asked_what_it_would_be_good_for(tmp_path: Path) -> None:
    name = "consumerOffset.json.bak"
    assert examined(tmp_path, WHOLE, name=name).whole
    assert lines(examined(tmp_path, WHOLE[:33], name=name), "broker") == [
        "4.9 and 5.3: when it needs this .bak, it refuses it and does not start"
    ]
    assert lines(examined(tmp_path, b"", name=name), "broker") == [
        "4.9 and 5.3: when it needs this .bak, it starts without offsets"
    ]
    single_quotes = WHOLE.replace(b'"', b"'")
    assert lines(examined(tmp_path, single_quotes, name=name), "broker") == [
        "4.9 and 5.3: undetermined; if it needs this .bak and refuses it, it does not start"
    ]


def test_another_file_under_this_name_is_foreign(tmp_path: Path) -> None:
    verdict = examined(tmp_path, (SAMPLES / "topics-4.9.7.json").read_bytes())
    assert lines(verdict, "strictly")[0].startswith("foreign: ")
    assert "another file with this name" in lines(verdict, "mend")[0]


def test_invisible_characters_are_spelled_out(tmp_path: Path) -> None:
    [text] = lines(examined(tmp_path, b'\xef\xbb\xbf{"offsetTable":{}} x'), "text")
    assert text == '⟨U+FEFF⟩{"offsetTable":{}}  ▶ x ⟨end⟩'
    [text] = lines(examined(tmp_path, b'{\r\n\t"offsetTable":\xc2\xa0{}}'), "text")
    assert text == '{⟨CR⟩⟨LF⟩⟨TAB⟩"offsetTable": ▶ ⟨U+00A0⟩{}} ⟨end⟩'
    [text] = lines(examined(tmp_path, WHOLE + b"\0" * 30), "text")
    assert text.endswith('"orders@ship":{0:9}}} ▶ ⟨U+0000 × 30⟩ ⟨end⟩')


def test_a_key_that_no_group_can_reach_is_named(tmp_path: Path) -> None:
    verdict = examined(tmp_path, '{"offsetTable":{"orders\u200b":{0:5}}}'.encode())
    assert verdict.whole
    assert lines(verdict, "holds")[0].endswith("'orders⟨U+200B⟩'")


@pytest.mark.parametrize(
    ("name", "kind", "holds"),
    [
        ("consumerOffset-5.3.3.json", "consumer_offset", "topic@group"),
        ("topics-5.3.3.json", "topics", "topics"),
        ("subscriptionGroup-4.9.7.json", "subscription_groups", "consumer groups"),
        ("delayOffset-4.9.7.json", "delay_offset", "delay levels"),
        ("notice-group.offsets.json", "client_offsets", "queues"),
        ("brokers-5.3.3.json", "brokers", "brokers"),
    ],
)
def test_each_kind_is_known_by_name_or_by_what_it_holds(tmp_path: Path, name: str, kind: str, holds: str) -> None:
    data = (SAMPLES / name).read_bytes()
    for other_name in (name.replace("-5.3.3", "").replace("-4.9.7", ""), "copy.json"):
        verdict = examined(tmp_path, data, name=other_name)
        assert (verdict.kind, verdict.whole) == (kind, True)
        assert holds in lines(verdict, "holds")[0]
    torn = examined(tmp_path, data[: len(data) * 2 // 3], name="copy.json")
    assert (torn.kind, torn.whole) == (kind, False)
    assert lines(torn, "mend")


def test_what_a_broker_makes_of_other_kinds_is_not_guessed(tmp_path: Path) -> None:
    assert lines(examined(tmp_path, b"{", b"{}", name="topics.json"), "broker") == [
        "undetermined; if it refuses it, it takes the .bak"
    ]
    assert lines(examined(tmp_path, b"", name="g.offsets.json"), "client") == [
        "finds nothing in it, and starts without any of this: there is no .bak"
    ]
    assert lines(examined(tmp_path, b"", name="brokers.json"), "broker") == []


GROUPS = st.text("ab@%é", min_size=1, max_size=6)
TABLES = st.dictionaries(
    GROUPS, st.dictionaries(st.integers(0, 20), st.integers(-1, 2**63 - 1), max_size=4), max_size=4
)


def brokers_table(text: str, version: str) -> OffsetTable | None:
    decoded = decode_as_a_broker(text, version)
    return decoded and decoded.offset_table


@given(TABLES, st.booleans(), st.booleans(), st.data())
def test_every_broker_reads_a_whole_file_and_refuses_one_cut_short(
    table: OffsetTable, pretty: bool, has_version: bool, data: st.DataObject
) -> None:
    # So doctor needs the strict reader alone.
    text = encode(table, pretty)
    text = text[:-1] + ',"dataVersion":{"counter":1,"stateVersion":0}}' if has_version else text
    assert len(decode_consumer_offset(text.encode())) == sum(map(len, table.values()))
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    assert strictly(cut.encode()) == TORN
    for version in (BROKER_4, "5.3.3"):
        assert brokers_table(text, version) == table
        with pytest.raises(RocketMQError):
            decode_as_a_broker(cut, version)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


PIECES = st.sampled_from([*[bytes([byte]) for byte in WHOLE[:40]], b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\x85"])
DAMAGED = st.builds(
    lambda begin, middle, rest: WHOLE[:begin] + b"".join(middle) + WHOLE[rest:],
    st.integers(0, len(WHOLE)),
    st.lists(PIECES, max_size=4),
    st.integers(0, len(WHOLE)),
)


def strictly(data: bytes) -> str | None:
    try:
        decode_consumer_offset(data)
    except DecodeError as error:
        return error.code
    return None


@given(DAMAGED, st.none() | DAMAGED)
def test_whole_or_not_is_the_strict_readers_word_and_nothing_crashes(
    folder: Path, data: bytes, bak: bytes | None
) -> None:
    (folder / "consumerOffset.json.bak").unlink(missing_ok=True)
    verdict = examined(folder, data, bak)
    assert verdict.as_text().replace("\n", "").isprintable()
    code = strictly(data)
    assert verdict.whole == (code is None)
    if code == TORN:
        for version in (BROKER_4, "5.3.3"):
            with pytest.raises(RocketMQError):
                decode_as_a_broker(data.decode("utf-8", "replace"), version)
    if code is not None:
        assert verdict.facts["error"]["code"] == code
        assert lines(verdict, "mend")
        assert lines(verdict, "broker")


def test_a_file_of_no_kind_is_refused(tmp_path: Path) -> None:
    for name in ("notes.txt", "wire.pcap"):
        with pytest.raises(InputError):
            examined(tmp_path, b"hello", name=name)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    verdict = examined(tmp_path, b"\xef\xbb\xbf" + WHOLE)
    assert verdict.whole
    assert lines(verdict, "holds") == ["3 queues of 2 keys topic@group"]
    assert "byte order mark" in lines(verdict, "note")[0]


def test_utf_16_is_named_and_the_broker_refuses_it(tmp_path: Path) -> None:
    verdict = examined(tmp_path, WHOLE.decode().encode("utf-16"), WHOLE)
    assert lines(verdict, "strictly")[0].startswith("utf_16: it is UTF-16, ")
    assert "undetermined; if it refuses it, it takes the .bak" in lines(verdict, "broker")[0]
    assert "UTF-8" in lines(verdict, "mend")[0]


def test_the_file_of_an_lmq_broker(tmp_path: Path) -> None:
    both = b'{"lmqOffsetTable":{"%LMQ%a@%LMQ%a":42},"offsetTable":{"orders@pay":{0:56}}}'
    verdict = examined(tmp_path, both, name="lmqConsumerOffset.json")
    assert (verdict.kind, verdict.whole) == ("lmq_consumer_offset", True)
    assert lines(verdict, "holds") == ["2 queues of 2 keys topic@group"]
    assert "enableLmq=true" in lines(verdict, "kind")[0]
    assert not examined(tmp_path, both[:20], name="lmqConsumerOffset.json").whole
    beside = examined(tmp_path, WHOLE)
    assert "lmqConsumerOffset.json is beside it" in lines(beside, "note")[0]
    (tmp_path / "copy.json").write_bytes(both)
    assert examine_file(str(tmp_path / "copy.json")).kind == "lmq_consumer_offset"


def test_offsets_that_no_queue_can_have_are_counted(tmp_path: Path) -> None:
    verdict = examined(tmp_path, b'{"offsetTable":{"orders@pay":{0:-1,1:9223372036854775807,2:5}}}')
    assert verdict.whole
    assert verdict.facts["impossible_offsets"] == 2
    assert "2 offsets that no queue can have, such as -1 of orders@pay 0" in lines(verdict, "holds")[0]
