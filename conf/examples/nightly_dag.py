"""Airflow 3: replays what record.service recorded, every day at 08:15 UTC.

Copy this file into the folder of the DAGs and set the paths. The workers need mqreplay, the recording and the warehouse
under these paths. It needs the packages apache-airflow and apache-airflow-providers-standard.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

NIGHTLY = "/opt/mqreplay/.venv/bin/mqreplay nightly /var/lib/mqreplay/recording --warehouse /var/lib/mqreplay/warehouse"

with DAG(
    dag_id="mqreplay_nightly",
    description="mqreplay replays the last night of the RocketMQ cluster",
    schedule="15 8 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # a run reads all that is new, so missed runs need no run of their own
    max_active_runs=1,  # one run at a time works on a warehouse
    tags=["rocketmq"],
) as dag:
    nightly = BashOperator(
        task_id="nightly",
        bash_command=NIGHTLY,
        retries=2,
        retry_delay=timedelta(minutes=10),
        execution_timeout=timedelta(hours=4),
    )
    # The same night again: nothing is new, so it takes seconds. The task fails if a finding is critical.
    findings = BashOperator(task_id="findings", bash_command=f"{NIGHTLY} --fail-on critical", retries=0)
    nightly >> findings
