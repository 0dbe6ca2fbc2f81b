"""The proxy parses the protocol correctly when it arrives byte by byte."""

from __future__ import annotations

import struct

from tests.faults.kit.wire import Conversation, Cut

READY, IN_TRANSACTION = b"I", b"T"


def test_no_byte_of_the_commits_answer_passes() -> None:
    cut = Cut("insert into letters", left=1)
    conversation = started(cut)
    send(conversation, b"Q", b"begin\0")
    assert passed(conversation, done("BEGIN") + ready(IN_TRANSACTION)) != b""
    send(conversation, b"Q", b"insert into letters values (1)\0")
    assert passed(conversation, done("INSERT 0 1") + ready(IN_TRANSACTION)) != b""

    send(conversation, b"Q", b"COMMIT;\0")
    answer = passed(conversation, done("COMMIT") + ready(READY))

    assert answer == b""
    assert cut.happened == 1


def test_a_statement_prepared_again_replaces_the_one_of_the_same_name() -> None:
    cut = Cut("insert into letters", left=1)
    conversation = started(cut)
    send(conversation, b"P", b"s1\0insert into letters values (1)\0\0\0")
    send(conversation, b"P", b"s1\0select 1\0\0\0")

    execute(conversation, b"s1")
    answer = done("SELECT 1") + ready(READY)

    assert passed(conversation, answer) == answer
    assert cut.happened == 0


def test_a_pipeline_is_cut_at_its_own_statement() -> None:
    cut = Cut("insert into letters", left=1)
    conversation = started(cut)
    send(conversation, b"P", b"read\0select 1\0\0\0")
    send(conversation, b"P", b"write\0insert into letters values (1)\0\0\0")

    execute(conversation, b"read")
    execute(conversation, b"write")
    first = done("SELECT 1") + ready(READY)

    assert passed(conversation, first) == first
    assert cut.happened == 0
    assert passed(conversation, done("INSERT 0 1") + ready(READY)) == b""
    assert cut.happened == 1


def test_a_pipeline_continues_after_an_error() -> None:
    cut = Cut("insert into letters", left=1)
    conversation = started(cut)
    send(conversation, b"P", b"write\0insert into letters values (1)\0\0\0")

    execute(conversation, b"write")
    execute(conversation, b"write")
    refused = message(b"E", b"SERROR\0\0") + ready(READY)

    assert passed(conversation, refused) == refused
    assert passed(conversation, done("INSERT 0 1") + ready(READY)) == b""
    assert cut.happened == 1


def started(cut: Cut) -> Conversation:
    conversation = Conversation([cut])
    options = b"user\0postgres\0\0"
    conversation.client_sent(struct.pack("!II", 8 + len(options), 196608) + options)
    return conversation


def send(conversation: Conversation, kind: bytes, body: bytes) -> None:
    for byte in message(kind, body):
        conversation.client_sent(bytes([byte]))


def execute(conversation: Conversation, name: bytes) -> None:
    send(conversation, b"B", b"\0" + name + b"\0" + bytes(6))
    send(conversation, b"E", b"\0" + bytes(4))
    send(conversation, b"S", b"")


def passed(conversation: Conversation, answer: bytes) -> bytes:
    return b"".join(conversation.server_sent(bytes([byte])).passing for byte in answer)


def done(tag: str) -> bytes:
    return message(b"C", tag.encode() + b"\0")


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", 4 + len(body)) + body
