"""Gold tables -> one self-contained HTML page.

collect.py   what the page needs of the tables, with few Spark jobs
build.py     that -> the page (pure: the same data, the same bytes)
timeline.py  findings over the night, as SVG
templates/   the page itself
"""
