"""Gold tables -> one self-contained HTML page.

collect.py         what the page needs of the tables
data.py            that, as plain values
coverage.py        what was judged and what was not
verdict.py         the night in one sentence
undetermined.py    reasons of undetermined decisions in plain words
evidence_rows.py   the rows of evidence that findings name
evidence_words.py  those rows in words; evidence_values.py: values of their columns
finding_tree.py    effects below their causes
pictures/          pictures of the night as inline SVG
build.py           all of it -> the page (pure: the same data, the same bytes)
text.py            values as a reader is to see them
templates/         the page itself: a file for each section, its style and its script
"""
