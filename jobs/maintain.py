"""Removes old days, compacts the tables, and removes unused files.

spark-submit [--master ...] jobs/maintain.py --warehouse W [--keep DAYS] [--dry-run] [--conf FILE] [--json]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("maintain"))
