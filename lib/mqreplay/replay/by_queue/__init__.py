"""What is judged of one queue at a time, all in one look: events.py brings them together, each other module is a rule.

Several tables and findings ask of every queue what its offsets, its pulls and its ends were, in the order of time.
Asked one by one, each shuffles the same rows again; here they come to a worker once, and the rules are numpy.
"""
