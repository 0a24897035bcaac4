"""RocketMQ's decisions as pure functions: the law. Standard library only (and the parser library, for SQL92 filters).

Each file is one idea, each function one decision, named and argued as RocketMQ names it; docs/decisions.md lists them.
"""
