"""Spark session, table contracts, Delta tables, and the warehouse's lock. Knows no RocketMQ.

session.py     the one builder of sessions          jars.py        the JARs Delta needs
contract.py    contracts -> columns, DDL            table_docs.py  contracts -> docs/tables.md
warehouse.py   reads and replaces rows of tables    sql.py         values quoted into SQL
lock.py        one run at a time                    unfinished.py  what a run that died had begun
leftovers.py   files that no version knows         remembered.py  what the next run asks first
"""
