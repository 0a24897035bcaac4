"""What is wrong with this machine, or with a file, and how to mend it.

machine.py     Java, Spark, JARs, disk, settings
files.py       files one by one: examined, printed
verdict.py     what is found of a file, for a person and for a program
kind.py        what a file is taken for
config_file.py a file read whole: consumerOffset.json, topics.json and the like, brokers.json
on_load.py     what a broker makes of consumerOffset.json and its .bak when it starts
line_file.py   a JSONL file
place.py       where in a file something stands, and the text around it

All but machine.py need neither Spark nor Java.
"""
