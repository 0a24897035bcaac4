"""Keys come from a file or the environment, and nothing shows them."""

from __future__ import annotations

import pickle
import traceback

import pytest

from mqreplay.recorder.remoting.credentials import Credentials, load_credentials
from mqreplay.words.errors import InputError

FILES = {
    "tools.yml": "accessKey: rocketmq2\nsecretKey: 12345678\n",
    "quoted": "# who reads\n---\naccessKey: \"rocketmq2\"\n\nsecretKey: '12345678' # do not tell\n",
    "comment": "accessKey: rocketmq2 # the reader\r\nsecretKey: 12345678\r\n",
    "properties": "! who reads\naccessKey=rocketmq2\nsecretKey = 12345678\n",
    "bom": "\ufeffaccessKey: rocketmq2\nsecretKey: 12345678",
}
WRONG = {
    "has no accessKey and no secretKey": "",
    "has no secretKey": "accessKey: s3cret-a",
    "secretKey is empty": "accessKey: s3cret-a\nsecretKey:\n",
    "line 2 is not accessKey": "accessKey: s3cret-a\ns3cret-b\n",
    "line 1 is not accessKey": "accounts:\n- accessKey: s3cret-a\n",
    "line 3 has accessKey for the second time": "accessKey: s3cret-a\nsecretKey: s3cret-b\naccessKey: s3cret-c\n",
    "not printable": "accessKey: s3cret\ta\nsecretKey: s3cret-b\n",
    "is too large": "#" * 20_000,
    "is not UTF-8": b"accessKey: s3cret\xff\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_file_is_read_as_rocketmq_reads_it(tmp_path, text):
    path = tmp_path / "keys"
    path.write_bytes(text.encode())
    assert load_credentials(str(path), {"MQREPLAY_ACCESS_KEY": "other"}) == Credentials("rocketmq2", "12345678")


def test_a_token_and_a_hash_in_a_key(tmp_path):
    path = tmp_path / "keys"
    path.write_text("accessKey: a#1\nsecretKey: 'b # 2'\nsecurityToken: c:3=4\n")
    assert load_credentials(str(path), {}) == Credentials("a#1", "b # 2", "c:3=4")


@pytest.mark.parametrize(("output", "text"), WRONG.items())
def test_a_wrong_file_is_named_and_its_keys_are_not(tmp_path, output, text):
    path = tmp_path / "keys"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load_credentials(str(path), {})
    assert output in str(caught.value)
    assert str(path) in str(caught.value)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)).replace(repr(text), "")


def test_a_file_that_is_not_there_or_a_folder(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="cannot be read: "):
            load_credentials(str(path), {})


def test_the_environment():
    environ = {"MQREPLAY_ACCESS_KEY": "a", "MQREPLAY_SECRET_KEY": "b"}
    assert load_credentials(None, environ) == Credentials("a", "b")
    assert load_credentials(None, environ | {"MQREPLAY_SECURITY_TOKEN": "c"}) == Credentials("a", "b", "c")
    assert load_credentials(None, {"MQREPLAY_ACCESS_KEY": "", "MQREPLAY_SECRET_KEY": ""}) is None
    assert load_credentials(None, {}) is None


@pytest.mark.parametrize(
    ("environ", "output"),
    [
        ({"MQREPLAY_ACCESS_KEY": "s3cret"}, "MQREPLAY_ACCESS_KEY is set and MQREPLAY_SECRET_KEY is not"),
        ({"MQREPLAY_SECRET_KEY": "s3cret"}, "MQREPLAY_SECRET_KEY is set and MQREPLAY_ACCESS_KEY is not"),
        ({"MQREPLAY_ACCESS_KEY": "a", "MQREPLAY_SECRET_KEY": "s3cret\n"}, "MQREPLAY_SECRET_KEY has a character"),
        ({"MQREPLAY_ACCESS_KEY": "a", "MQREPLAY_SECRET_KEY": "s3cret\udcff"}, "MQREPLAY_SECRET_KEY is not UTF-8"),
        (
            {"MQREPLAY_ACCESS_KEY": "a", "MQREPLAY_SECRET_KEY": "b", "MQREPLAY_SECURITY_TOKEN": "s3cret\udcff"},
            "MQREPLAY_SECURITY_TOKEN is not UTF-8",
        ),
    ],
)
def test_half_of_an_environment(environ, output):
    with pytest.raises(InputError, match=output) as caught:
        load_credentials(None, environ)
    assert "s3cret" not in str(caught.value)


def test_nothing_shows_the_keys():
    credentials = Credentials("s3cret-a", "s3cret-b", "s3cret-c")
    assert "s3cret" not in f"{credentials!r} {credentials} {[credentials]}"
    assert pickle.loads(pickle.dumps(credentials)) == credentials
