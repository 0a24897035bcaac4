"""The moving cursor of the page, and a part for each group, broker and topic.

Both show the states of mqreplay.moment.night_states.

json_text.py the states as the page holds them, for cursor.js
places.py     groups, brokers and topics as parts of the page
"""
