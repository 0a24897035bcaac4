"""A night of copies of consumerOrderInfo.json: a queue that ordered POP cannot leave is a finding."""

from __future__ import annotations

from pathlib import Path

from mqreplay.settings import load_settings
from tests_shared import rows_at, run

BEGAN = 1795471744763
RECORD = '{"cm":%d,"i":15000,"l":%d,"o":%s,"popTime":%d}'


def test_a_blocked_queue_is_reported_and_a_healthy_one_is_not(tmp_path: Path) -> None:
    for second in range(0, 151, 15):
        ts = BEGAN + second * 1000
        folder = tmp_path / "r" / "snapshots" / "broker-a-0" / str(ts)
        folder.mkdir(parents=True)
        stands, moves = RECORD % (2, ts, "[17,1,3]", ts), RECORD % (0, ts, f"[{second}]", ts)
        (folder / "consumerOrderInfo.json").write_text('{"table":{"orders@pay":{0:' + stands + ",1:" + moves + "}}}")
    run("nightly", str(tmp_path / "w"), load_settings(), lambda _: None, recordings=[str(tmp_path / "r")], cluster="c")
    (found,) = rows_at(tmp_path / "w", "gold.finding")
    assert (found["kind"], found["severity"], found["queue_id"]) == ("pop_order_blocked", "warning", 0)
    assert found["summary"] == (
        "Group pay did not acknowledge the first message of orders in broker-a/0 at 17 for 150 s; 2 messages were"
        " handed out and not acknowledged, and block what follows."
    )
