"""One HTML page for each cluster.

spark-submit [--master ...] jobs/report.py --warehouse W [--cluster NAME] [--conf FILE] [--json] [--fail-on SEVERITY]
"""

import sys

from mqreplay.cli.job import main

if __name__ == "__main__":
    sys.exit(main("report"))
