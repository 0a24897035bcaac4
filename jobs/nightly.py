"""A whole night: ingest, replay, validate, report.

spark-submit [--master ...] jobs/nightly.py --recording R [--recording R2] --warehouse W
    [--cluster NAME] [--conf FILE] [--json] [--fail-on SEVERITY]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("nightly"))
