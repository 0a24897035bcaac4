"""What mqreplay expects of an object store, by obstore against a real server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from storage.s3_client import opened
from storage.s3_front import s3_front
from storage.s3_server import S3Server

CREATORS = 20
ROUNDS = 10
Opens = Callable[..., S3Store]


@pytest.fixture
def opens(s3_server: S3Server) -> Opens:
    """How to open a new bucket of the server."""

    return lambda **how: opened(s3_server, s3_server.make_bucket(), **how)


def test_one_of_many_creators_of_a_key_wins(opens: Opens) -> None:
    store = opens()

    def create(number: int, key: str) -> int | None:
        try:
            obstore.put(store, key, b"%d" % number, mode="create")
        except AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(CREATORS) as pool:
        for key in (f"key-{turn}" for turn in range(ROUNDS)):
            won = [n for n in pool.map(create, range(CREATORS), [key] * CREATORS) if n is not None]
            assert len(won) == 1, key
            assert obstore.get(store, key).bytes().to_bytes() == b"%d" % won[0]


def test_files_are_listed_and_read_by_ranges(opens: Opens) -> None:
    store = opens()
    obstore.put(store, "folder/a", b"0123456789")
    obstore.put(store, "folder/b", b"")
    obstore.put(store, "folders/c", b"1")
    listed = {item["path"]: item["size"] for page in obstore.list(store, "folder") for item in page}
    assert listed == {"folder/a": 10, "folder/b": 0}
    assert bytes(obstore.get_range(store, "folder/a", start=3, length=4)) == b"3456"
    assert bytes(obstore.get_range(store, "folder/a", start=8, length=40)) == b"89"
    assert obstore.get(store, "folder/b").bytes().to_bytes() == b""
    obstore.delete(store, ["folder/a", "folder/b", "folder/not-there"])
    assert not [item for page in obstore.list(store, "folder") for item in page]
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "folder/a")


def test_a_file_is_replaced_only_if_it_is_the_expected_one(opens: Opens) -> None:
    store = opens()
    first = obstore.put(store, "key", b"1")
    obstore.put(store, "key", b"2", mode={"e_tag": first["e_tag"]})
    with pytest.raises(PreconditionError):
        obstore.put(store, "key", b"3", mode={"e_tag": first["e_tag"]})
    assert obstore.get(store, "key").bytes().to_bytes() == b"2"


def test_a_wrong_secret_is_refused(opens: Opens) -> None:
    with pytest.raises(BaseError, match="SignatureDoesNotMatch"):
        obstore.put(opens(secret="another"), "key", b"1")


def test_requests_are_delayed_stalled_and_cut(s3_server: S3Server, opens: Opens) -> None:
    with s3_front(s3_server.front.port) as front, ThreadPoolExecutor(1) as pool:
        store = opens(endpoint=front.endpoint)
        front.stalls = True
        write = pool.submit(obstore.put, store, "key", b"1")
        with pytest.raises(TimeoutError):
            write.result(0.3)
        front.stalls = False
        assert write.result(10)["e_tag"]
        front.cuts = True
        with pytest.raises(BaseError):
            obstore.get(store, "key")


def test_a_store_without_conditional_writes(s3_server: S3Server, opens: Opens) -> None:
    with s3_front(s3_server.front.port) as front:
        store = opens(endpoint=front.endpoint)
        front.refuses = 501
        with pytest.raises(BaseError, match="NotImplemented"):
            obstore.put(store, "key", b"1", mode="create")
        front.refuses, front.ignores_conditions_in = 0, s3_server.folder
        obstore.put(store, "key", b"1", mode="create")
        obstore.put(store, "key", b"2", mode="create")
        assert obstore.get(store, "key").bytes().to_bytes() == b"2"
