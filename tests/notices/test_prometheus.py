"""The figures of a night in real Prometheus: it reads the file and the endpoint, and loads rules and dashboard."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cluster.processes import free_port
from mqreplay.answers.figures import METRICS, WATCHED, Sample
from mqreplay.cli.command_line import main
from mqreplay.engines.local import LocalEngine
from mqreplay.notices.metrics import Figures, serve_metrics
from mqreplay.notices.watch import ClusterRound, RoundDone, Watch
from mqreplay.settings import load_settings
from night.feed import Feed
from night.later import moved
from tests_shared import ROOT, SAMPLE, rows_at

RULES, DASHBOARD = (ROOT / "conf/examples" / name for name in ("prometheus-rules.yaml", "grafana-dashboard.json"))
NOW = dt.datetime(2026, 11, 21, 2, 42, 37, tzinfo=dt.UTC)
SOURCE = SAMPLE / "bulk-5.3.3"


def program(name: str) -> str:
    """`make prometheus` unpacks it into the virtual environment, where none is in the PATH."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.prefix, "prometheus", "usr", "bin")))
    assert found, f"{name} is missing: run `make prometheus`"
    return found


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a warehouse, and of the figures of its nightly run."""
    folder = tmp_path_factory.mktemp("metrics")
    words = ["nightly", str(SOURCE), "--warehouse", str(folder / "w"), "--engine", "local"]
    assert main([*words, "--cluster", "c", "--metrics", str(folder / "night.prom")]) == 0
    return folder


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """The figures of a round of watch on the whole recording."""
    folder = tmp_path_factory.mktemp("watch")
    feed = Feed(SOURCE, folder / "live")
    _, end = feed.reach
    feed.until(end)
    figures, live = Figures(), [str(folder / "live")]
    with LocalEngine(folder, processes=1) as engine:
        watching = Watch(
            str(folder / "w"),
            load_settings(),
            live,
            "c",
            engine,
            folder / "own",
            60,
            lambda text: None,
            measures_lag=True,
        )
        figures.take_round(watching.round(dt.datetime.fromtimestamp(end / 1000, dt.UTC)))
    return figures


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for each in families for one in each.samples}


def by_label(found: dict[Any, float], metric: str, label: str) -> dict[str, float]:
    return {dict(labels)[label]: value for (name, labels), value in found.items() if name == metric}


def test_file_has_the_figures_of_the_tables(night: Path) -> None:
    found = samples((night / "night.prom").read_text())
    assert [path.name for path in night.glob("*.prom*")] == ["night.prom"]
    rows = rows_at(night / "w", "gold.finding")
    of_kind = {(name, labels): value for (name, labels), value in found.items() if name == "mqreplay_findings"}
    assert sum(of_kind.values()) == len(rows) > 3
    assert set(by_label(of_kind, "mqreplay_findings", "kind")) == {row["kind"] for row in rows}
    undetermined = sum(
        row["decisions"] for row in rows_at(night / "w", "gold.judgement") if row["judgement"] == "undetermined"
    )
    values = [v for (_, labels), v in found.items() if ("judgement", "undetermined") in labels]
    assert sum(values) == undetermined > 0
    assert by_label(found, "mqreplay_consumer_lag_messages", "consumer_group") == {
        "alert-desk": 1,
        "meter-archive": 34_943,
        "meter-billing": 33_007,
    }
    exposure = rows_at(night / "w", "gold.failover_exposure")
    last = {row["broker_name"]: row for row in sorted(exposure, key=lambda row: row["minute_ts"])}
    redelivered = {name: row["redelivered"] for name, row in last.items()}
    assert by_label(found, "mqreplay_failover_redelivered_messages", "broker_name") == redelivered
    assert found["mqreplay_failed_expectations", (("cluster", "c"),)] == 0
    assert time.time() - found["mqreplay_nightly_timestamp_seconds", (("cluster", "c"),)] < 600


def test_round_of_watch_has_open_findings_and_the_lag_of_now(watched: Figures) -> None:
    found = samples(generate_latest(watched.registry()).decode())
    assert {"slave_pull", "stuck_queue"} <= set(by_label(found, "mqreplay_open_findings", "kind"))
    assert by_label(found, "mqreplay_consumer_lag_messages", "consumer_group")["meter-archive"] == 34_943
    assert not [name for name, _ in found if name == "mqreplay_nightly_timestamp_seconds"]


def test_figures_of_a_night_stay_until_the_next_one() -> None:
    def done(*of_round: Sample, night: tuple[Sample, ...] = ()) -> RoundDone:
        one = ClusterRound("c", [], 0, NOW, 1.0, False, of_round)
        return RoundDone(1, NOW, 0, 0, 0.0, [one], (), night)

    lag, findings = (
        "mqreplay_consumer_lag_messages",
        Sample("mqreplay_findings", ("c", "stuck_queue", "info", "false"), 2),
    )
    figures = Figures()
    figures.take_round(done(Sample(lag, ("c", "g"), 5), night=(findings, Sample(lag, ("c", "g"), 900))))
    assert list(figures.samples) == [findings, Sample(lag, ("c", "g"), 5)]
    figures.take_round(done())  # the lag is not known any more
    assert list(figures.samples) == [findings]
    figures.take_round(done(night=(Sample("mqreplay_failed_expectations", ("c",), 0),)))
    assert [sample.metric for sample in figures.samples] == ["mqreplay_failed_expectations"]


@pytest.mark.long
def test_watch_answers_prometheus(tmp_path: Path) -> None:
    _, end = Feed(SOURCE, tmp_path / "unused").reach
    live = moved(SOURCE, tmp_path / "live", int(time.time() * 1000) - end)
    port = free_port()
    words = [str(live), "--warehouse", str(tmp_path / "w"), "--watch", "--metrics-port", str(port)]
    command = [sys.executable, "-m", "mqreplay", "nightly", *words, "--metrics", str(tmp_path / "watch.prom")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "round 1:" in line:
                break
        deadline = time.monotonic() + 30
        while not (tmp_path / "watch.prom").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=accept)
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    found = samples(text)
    assert found == samples((tmp_path / "watch.prom").read_text())
    assert {"slave_pull", "stuck_queue"} <= set(by_label(found, "mqreplay_open_findings", "kind"))
    assert by_label(found, "mqreplay_consumer_lag_messages", "consumer_group")["meter-archive"] == 34_943


def test_a_port_that_is_taken_is_an_error(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "live").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [str(tmp_path / "live"), "--warehouse", str(tmp_path / "w"), "--watch", "--metrics-port", port]
        assert main(["nightly", *words]) == 2
    assert f"--metrics-port {port}: Address already in use" in capsys.readouterr().err


def test_promtool_accepts_file_and_rules(night: Path, tmp_path: Path) -> None:
    for words, text in (
        (["check", "metrics"], (night / "night.prom").read_text()),
        (["check", "rules", str(RULES)], ""),
    ):
        done = subprocess.run([program("promtool"), *words], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(RULES_FIRE))
    command = [program("promtool"), "test", "rules", str(tmp_path / "test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


NAME, LABEL = re.compile(r"\bmqreplay_\w+"), re.compile(r"(\w+) *(?:=~|!~|!=|=)")


def queries() -> list[str]:
    """Every query of the rules and of the dashboard, also those of its variables."""
    dashboard = json.loads(DASHBOARD.read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found += [each["query"]["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    return found + [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_queries_name_only_metrics_and_labels_that_are_written() -> None:
    written = {*METRICS, "mqreplay_build_info"}
    for query in queries():
        assert set(NAME.findall(query)) <= written, query
        for name, selected in re.findall(r"(mqreplay_\w+)\{([^}]*)\}", query):
            assert set(LABEL.findall(selected)) <= {"job", "cluster", *METRICS[name].labels}, query
        for name, label in re.findall(r"label_values\((\w+), (\w+)\)", query):
            assert label in {"cluster", *METRICS[name].labels}, query
    shown = {name for query in queries() for name in NAME.findall(query)}
    assert set(METRICS) - shown == set(), "figures that no panel and no rule shows"


def test_legends_and_variables_name_labels_and_data_sources_that_exist() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    text = DASHBOARD.read_text()
    assert set(re.findall(r"\$\{?(\w+)", text)) - {"__all", "__interval", "__rate_interval"} <= variables
    labels = {"cluster", *(label for metric in METRICS.values() for label in metric.labels)}
    assert set(re.findall(r"\{\{ *(\w+) *\}\}", text)) <= labels
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


RULES_FIRE = {
    "rule_files": [str(RULES)],
    "tests": [
        {
            "interval": "1m",
            "input_series": [
                {"series": 'mqreplay_consumer_lag_messages{cluster="c",consumer_group="g"}', "values": "0 200000x20"},
                {"series": 'mqreplay_nightly_timestamp_seconds{cluster="c"}', "values": "0x1600"},
            ],
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": at,
                    "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names],
                }
                for at, names in (
                    ("5m", []),
                    ("15m", ["MqreplayConsumerLag"]),
                    ("1570m", ["MqreplayNightlyMissing"]),
                )
            ],
        }
    ],
}


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[Callable[[str], Any]]:
    """What asks a running Prometheus, which reads the endpoint and the rules."""
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "mqreplay-watch", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    words = [f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    words.append(f"--web.listen-address=127.0.0.1:{port}")

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    with (folder / "log").open("w") as log, subprocess.Popen([program("prometheus"), *words], stderr=log) as process:
        try:
            yield ask
        finally:
            process.terminate()


def asked(ask: Callable[[str], Any], expression: str) -> list[Any]:
    return list(ask("query?" + urllib.parse.urlencode({"query": expression}))["result"])


def test_prometheus_reads_figures_and_evaluates_rules_and_dashboard(
    night: Path, watched: Figures, tmp_path: Path
) -> None:
    of_night = samples((night / "night.prom").read_text())
    figures, port = Figures((*watched.samples, *_as_samples(of_night))), free_port()
    serve_metrics(figures, port)
    with prometheus(tmp_path, port) as ask:
        deadline = time.monotonic() + 60
        while True:
            try:
                if asked(ask, "ALERTS") and asked(ask, "up == 1"):
                    break
            except urllib.error.URLError:
                pass
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-2000:]
            time.sleep(0.5)
        rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == len(yaml.safe_load(RULES.read_text())["groups"][0]["rules"])
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
        firing = {one["metric"]["alertname"] for one in asked(ask, "ALERTS")}
        assert firing >= {"MqreplayCriticalFinding", "MqreplayCriticalFindingOpen", "MqreplayRecordingStopped"}
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            for target in panel["targets"]:
                assert asked(ask, target["expr"].replace("$cluster", ".*")), panel["title"]
        assert {name for name in METRICS if not asked(ask, name)} == set()


def _as_samples(found: dict[Any, float]) -> tuple[Any, ...]:
    made = []
    for (name, labels), value in found.items():
        if name in METRICS and name not in WATCHED:
            values = dict(labels)
            made.append(Sample(name, tuple(values[label] for label in ("cluster", *METRICS[name].labels)), value))
    return tuple(made)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metrics", "{}/none/x.prom"], "is not a file in an existing folder"),
        (["--metrics", "{}/x.txt"], "must end in .prom: node_exporter reads no other file"),
        (["--metrics-port", "9"], "--metrics-port belongs to --watch; use --metrics FILE"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, capsys: Any, words: list[str], message: str) -> None:
    words = [word.replace("{}", str(tmp_path)) for word in words]
    assert main(["nightly", str(SOURCE), "--warehouse", str(tmp_path / "w"), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "w").exists()
