"""Outputs of mqadmin as terminals, pages and shells leave them: no row is lost without a word."""

from __future__ import annotations

import re
import textwrap

import pytest

from each_case import for_each
from importer.mqadmin.mqadmin_texts import GROUP, TOPIC, TOPIC_COMMAND, TOPIC_HEAD, Read, topic_row

BOTH = [(0, 631), (0, 640)]
SESSION = f"$ {TOPIC_COMMAND}{TOPIC}"
AFTER = [
    *("[root@rmq-1 bin]# ls", "[me@h ~]$", "root@f2b36aa77e34:/opt# ls", "(base) me@host:~$ ls", "ops@vlnx bin]$ ls"),
    *("sh-4.2$ ls", "bash-5.1# exit", "~ $ ls", "/ # ls", "host% ls", "➜  bin ls", "# next", "$ ls", ">"),
    *(r"PS D:\rocketmq\bin> dir", r"C:\x> dir", "-bash: 10.0.2.15:9876: command not found", "sh: x: not found"),
    *("....", "=====", "```", "~~~", "^C", "exit", "logout", "__IO_RMQ_CL_END__", "Connection to h closed."),
    *(
        "That was after the restart",
        "real\t0m1.2s",
        "Topic Put TPS: 0.0",
        "total 48\ndrwxr-xr-x 2 root root 4096 Feb 13",
    ),
    *("\x1b[32mroot@h\x1b[0m:\x1b[34m~\x1b[0m# ls", "broker.conf", "/opt/rocketmq"),
]


@pytest.mark.parametrize("line", AFTER, ids=repr)
def test_a_line_that_is_no_row_ends_the_table(line):
    found = Read(f"{SESSION}{line}\n")
    assert (found.offsets, found.refused, found.admin.left_out) == (BOTH, [], {})


def cells(line):
    return "| " + " | ".join(re.split(r"\s{2,}", line.strip())) + " |\n"


def quoted(mark, text=SESSION):
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "text",
    {
        "fences": f"Run this:\n\n```bash\n$ {TOPIC_COMMAND}```\n\nIt gives:\n\n```text\n{TOPIC}```\nThanks!\n",
        "quote": quoted("> "),
        "quote without space": quoted(">"),
        "quote of a quote": quoted("> > "),
        "pipe": f"$ {TOPIC_COMMAND}{quoted('| ', TOPIC)}",
        "spaces": textwrap.indent(SESSION, "    "),
        "tab": textwrap.indent(SESSION, "\t"),
        "cells": f"$ {TOPIC_COMMAND}{cells(TOPIC_HEAD)}|---|---|---|---|---|\n"
        + "".join(cells(line) for line in TOPIC.splitlines()[1:]),
        "one space": "".join(" ".join(line.split()) + "\n" for line in SESSION.splitlines()),
        "tabs between": re.sub(r" {2,}(?=\S)", "\t", SESSION),
        "no trailing spaces": "".join(line.rstrip() + "\n" for line in SESSION.splitlines()),
        "no-break spaces": SESSION.replace(" ", "\u00a0"),
        "CRLF": SESSION.replace("\n", "\r\n"),
        "CR CR LF": SESSION.replace("\n", "\r\r\n"),
        "CR": SESSION.replace("\n", "\r"),
        "double spaced": SESSION.replace("\n", "\n\n"),
        "heading twice": f"$ {TOPIC_COMMAND}{TOPIC_HEAD}{TOPIC}",
        "heading twice, blank": f"$ {TOPIC_COMMAND}{TOPIC_HEAD}\n{TOPIC}",
        "noise": f"$ {TOPIC_COMMAND}" + TOPIC.replace("\n", "\nSLF4J: x\nRocketMQLog:WARN x\n"),
        "a mark inside": "\ufeff" + SESSION.replace("broker-a", "\ufeffbroker-a"),
        "colours": SESSION.replace("broker-a", "\x1b[1mbroker-a\x1b[0m"),
        "remark": SESSION.replace(",408", ",408   <-- stuck"),
    }.values(),
)
def test_forms_of_a_page(text):
    found = Read(text)
    assert (found.offsets, found.refused, found.admin.left_out) == (BOTH, [], {})


@pytest.mark.parametrize(
    ("command", "read_as"),
    [
        ("[hadoop@h rocketmq-4.4.0]$ ./bin/mqadmin topicstatus -t orders", "topicStatus"),
        ("SH MQADMIN.CMD TOPICSTATUS -t orders", "topicStatus"),
        (r"C:\b>mqadmin.cmd topicStatus -t orders", "topicStatus"),
        ("$ sh mqadmin topicStatus \\\n> -n h:9876 \\\n> -t orders", "topicStatus"),
        ("PS D:\\> .\\mqadmin.cmd topicStatus `\n>>  -t orders", "topicStatus"),
        ("java -cp x org.apache.rocketmq.tools.command.MQAdminStartup topicStatus -t orders", "topicStatus"),
        ("docker exec b sh -c 'cd /home && ./mqadmin topicStatus -t orders'", "topicStatus"),
        ("Every 2.0s: sh mqadmin topicStatus -t orders     h: Fri Feb 13 06:27:40 2026\n", "topicStatus"),
        ("[root@h bin]#mqadmin topicStatus --topic=orders", "topicStatus"),
    ],
)
def test_command_lines(command, read_as):
    found = Read(f"{command}\n{TOPIC}")
    assert (found.offsets, found.refused) == (BOTH, [])
    assert {record["topic"] for _, record in found.records} == {"orders"}
    assert read_as == "topicStatus"


def test_an_unknown_command_ends_the_output_before_it():
    text = f"{SESSION}$ mqadmin fooBar -x 1\nThe sub command fooBar not exist.\n$ mqadmin topicStatus -t pay\n{TOPIC}"
    found = Read(text)
    assert [record["topic"] for _, record in found.records] == ["orders", "pay"]
    assert found.refused == ["mqadmin fooBar is not used: RocketMQ has no such command"]


def test_an_output_of_another_command_is_not_read_as_that_of_the_command_line():
    found = Read(f"$ mqadmin clusterList -n h:9876\n\n{TOPIC}")
    assert found.refused == [
        "mqadmin clusterList has no output in it",
        "it names no topic; put the command as a line before the output",
    ]


def wrapped(text, width):
    return "".join(
        line[at : at + width].rstrip() + "\n" for line in text.splitlines() for at in range(0, max(len(line), 1), width)
    )


@for_each(range(67, 175))
def test_rows_that_a_terminal_broke_are_read_right_or_counted(width):
    for text in (TOPIC_COMMAND + TOPIC, f"mqadmin consumerProgress -g pay\n{GROUP}"):
        found = Read(wrapped(text, width))
        right = BOTH if "topicStatus" in text else [(631, 600), (640, 640)]
        assert set(found.offsets) <= set(right)
        # A terminal that is narrower than the names leaves no row to count.
        is_reported = found.refused == ["its heading is cut or broken; redirect mqadmin to a file"]
        assert len(found.offsets) + found.broken == 2 or (is_reported and not found.offsets), found.admin.left_out


@for_each(range(30, 110))
def test_a_table_cut_at_a_width_gives_no_wrong_number(width):
    text = TOPIC_COMMAND + "".join(line[:width] + "\n" for line in TOPIC.splitlines())
    found = Read(text)
    assert set(found.offsets) <= set(BOTH)
    is_reported = found.refused == ["its heading is cut or broken; redirect mqadmin to a file"]
    assert len(found.offsets) + found.broken == 2 or (is_reported and not found.offsets), found.admin.left_out


@for_each(range(1, 108))
def test_a_text_that_ends_inside_a_row(cut):
    found = Read(SESSION[:-cut])
    assert found.offsets[0] == (0, 631)
    assert set(found.offsets) <= set(BOTH)
    assert len(found.offsets) + found.broken == 2 or cut > 100


@pytest.mark.parametrize(
    "row",
    [
        topic_row("broker-a", "x", 0, 640, "2026-02-13 06:27:30,408"),
        topic_row("broker-a", 2, 0, "6e4", "2026-02-13 06:27:30,408"),
        topic_row("broker-a", 2, 0, "9" * 20, "2026-02-13 06:27:30,408"),
        topic_row("broker-b", 2, "", "", ""),
        topic_row("broker-b", 3_000_000_000, 0, 1, ""),
    ],
)
def test_a_broken_row_is_counted_and_the_others_are_kept(row):
    found = Read(f"{SESSION}{row}{topic_row('broker-a', 3, 0, 7, '')}\n")
    assert found.offsets == [*BOTH, (0, 7)]
    assert found.broken == 1
    [reason] = found.admin.left_out
    assert " ".join(row.split()) in reason, "one row is the example"


ERROR = (
    "org.apache.rocketmq.tools.command.SubCommandException: ConsumerProgressSubCommand command failed\n"
    "\tat org.apache.rocketmq.tools.command.MQAdminStartup.main(MQAdminStartup.java:1)\n"
    "Caused by: org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info in name "
    "server for the topic: %RETRY%g\nSee https://rocketmq.apache.org for further details.\n"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ERROR, "code 17: No topic route info in name server for the topic: %RETRY%g"),
        (f"{ERROR}[root@h bin]# \n", "code 17: No topic route info in name server for the topic: %RETRY%g"),
        ("a.b.RemotingConnectException: connect to <1.2.3.4:9876> failed\n", "RemotingConnectException: connect to"),
        ("sh: mqadmin: No such file or directory\n", "sh: mqadmin: No such file or directory"),
        ("ERROR: Please set the JAVA_HOME variable in your environment\n", "ERROR: Please set the JAVA_HOME"),
        ("usage: mqadmin consumerProgress [-g <arg>] [-h]\n -g <arg>  group\n", "usage: mqadmin consumerProgress"),
        ("com.alibaba.fastjson.JSONException: parseLong error, field : commitOffset\n", "JSONException: parseLong"),
    ],
)
def test_a_failed_command_says_why(text, why):
    found = Read(f"$ mqadmin consumerProgress -g g\n{text}")
    [refused] = found.refused
    assert refused.startswith(f"mqadmin consumerProgress -g g failed: {why}")


def test_a_list_of_commands_has_no_outputs():
    found = Read(f"  501  mqadmin topicStatus -t orders\n  502  mqadmin topicStatus -t orders\n{SESSION}")
    assert found.refused == ["mqadmin topicStatus has no output in it"] * 2
    assert found.offsets == BOTH
