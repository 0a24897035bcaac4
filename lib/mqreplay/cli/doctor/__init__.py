"""`mqreplay doctor`: problems of this machine or of a file, and what to do.

machine.py     Java, Spark, JARs, disk, settings
files.py       examine and print files
verdict.py     the result for a file, as text and as JSON, and the text around a position
kind.py        the kind of a file
config_file.py files read as a whole: consumerOffset.json, topics.json and others, brokers.json
on_load.py     a broker's start from consumerOffset.json and its .bak
line_file.py   JSONL files

Only machine.py needs Spark and Java.
"""
