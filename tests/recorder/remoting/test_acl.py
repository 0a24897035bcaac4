"""Signatures, against those that RocketMQ's own AclClientRPCHook of 4.9.7 and 5.3.3 gave (both give the same)."""

from __future__ import annotations

import json

import pytest

from mqreplay.recorder.remoting.credentials import Credentials
from mqreplay.recorder.remoting.frames import encode_request, signed_fields
from mqreplay.recorder.remoting.requests import ReadCode, Request

KNOWN = [
    (Credentials("RocketMQ", "12345678"), {}, "IUc8rrO/0gDch8CjObLQsW2rsiA="),
    (Credentials("RocketMQ", "12345678"), {"topic": "orders", "queueId": "3"}, "Vp/m4ffkhSMU1Tb9WKMgJbzNxvE="),
    (
        Credentials("rocketmq2", "s3cret/+=äß"),
        {"consumerGroup": "付款", "clientId": "10.0.0.7@1#2", "jstackEnable": "false"},
        "ZNdP3OeH9oMYMmOdq/2H24VTxeU=",
    ),
    (
        Credentials("RocketMQ", "12345678", "a-token"),
        {"topic": "orders", "acceptStandardJsonOnly": "true"},
        "S87Jx2lITv/aRNu3Ogfdc20Ciu8=",
    ),
]


@pytest.mark.parametrize(("credentials", "fields", "signature"), KNOWN)
def test_signatures_are_those_of_rocketmq(credentials, fields, signature):
    signed = signed_fields(fields, credentials)
    assert signed.pop("Signature") == signature
    assert signed.pop("AccessKey") == credentials.access_key
    assert signed.pop("SecurityToken", None) == credentials.security_token
    assert signed == fields


def test_a_frame_has_the_signature_and_never_the_secret():
    asked = Request(ReadCode.GET_TOPIC_STATS_INFO, (("topic", "orders"),))
    frame = encode_request(asked, 1, Credentials("RocketMQ", "s3cret-key"))
    reported = json.loads(frame[8:])["extFields"]
    assert set(reported) == {"topic", "AccessKey", "Signature"}
    assert b"s3cret-key" not in frame
