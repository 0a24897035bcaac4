"""consumerOffset.json as a broker reads it: fastjson 1.2's lenient JSON reader, from text to the table of offsets.

scan -> lexer -> parser read any text; cast and numbers convert values; table reads the table of offsets, and
consumer_offset the whole file. `mqreplay.decode.fastjson_text` is the reader of ingest and doctor: it is strict.
"""
