"""The page of a cluster without names: page_data reads tables in which each name has a replacement.

Replacements are those of a redacted bundle (bundle/names.py).

collect.py       the names in the tables of a warehouse
columns.py       what the text columns of the tables hold
replacements.py  the replacement of any text of the tables
sentences.py     names inside of sentences
warehouse.py     the tables with replaced names
"""
