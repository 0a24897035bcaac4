"""The moving cursor of the page: the state at each instant of the night, and a part for each group, broker and topic.

instants.py  instants as milliseconds since the night began; changes of counts
queues.py    queues of groups: owners, lag
brokers.py   brokers: whether they answered, their settings
states.py    all of it for one night, the places with findings first
json_text.py the states as the page holds them, for cursor.js
places.py    groups, brokers and topics as parts of the page
"""
