"""What an operator must know: judged rows in, rows of gold.finding out. Pure, as decisions/ is.

A kind of finding is a `FindingKind` record and the function that finds it, in one module. registry.py collects them.
"""
