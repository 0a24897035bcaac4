"""Spark session, table contracts, Delta tables, and the warehouse's lock. Knows no RocketMQ.

session.py     the one builder of sessions          jars.py        the JARs Delta needs
contract.py    contracts -> columns, DDL            table_docs.py  contracts -> docs/tables.md
warehouse.py   reads and replaces rows of tables    sql.py         values quoted into SQL
lock.py        one run at a time                    journal.py     rolls back an interrupted run
scratch.py     the process's temporary files        java_process.py  how Java is started
local_folder.py  folders that a user names          existing.py    whether a folder holds a warehouse
last_day.py    rows of several days, each once      plain_rows.py  rows as Python values
files.py       files by path or URI          object_store.py, hdfs.py  the stores behind it
storage.py     how stores are reached        lease.py       the lock of a remote warehouse
copies.py      copies of files of stores     duckdb_files.py  files of stores for DuckDB
orphans.py     files that no version names          remembered.py  what the next run asks first
"""
