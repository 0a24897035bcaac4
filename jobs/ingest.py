"""Recordings into the silver tables.

spark-submit [--master ...] jobs/ingest.py --recording R [--recording R2] --warehouse W
    [--cluster NAME] [--conf FILE] [--json] [--fail-on SEVERITY]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("ingest"))
