"""gold.finding: what an operator must know. One file a family of kinds; shape.py is what they share.

offsets.py     offset_rewind, offset_jump, offset_beyond_max
pulls.py       slave_pull, failover_pull
snapshots.py   torn_snapshot
"""
