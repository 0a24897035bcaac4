"""Gold tables -> one self-contained HTML page.

collect.py   what the page needs of the tables
data.py      that, as plain values
build.py     that -> the page (pure: the same data, the same bytes)
timeline.py  findings over the night
text.py      values as a reader is to see them
templates/   the page itself, a file for each section
"""
