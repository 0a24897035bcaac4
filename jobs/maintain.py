"""Compacts the tables, and removes what no version needs.

spark-submit [--master ...] jobs/maintain.py --warehouse W [--cluster NAME] [--conf FILE] [--json] [--fail-on SEVERITY]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("maintain"))
