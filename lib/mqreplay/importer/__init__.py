"""Files that operators have on disk, made into a recording.

files     the files to read, also in archives, and what their paths show
times     times in names, in lines and in outputs
brokers   the broker of a file, from names that evidence confirms
logs      log files of clients, brokers and name servers
stores    copies of brokers' and clients' files
mqadmin   outputs of mqadmin, and answers saved as JSON
captures  packet captures

import_command    the order of an import; staging: the unfinished recording; import_report: the report
brokers_file      brokers.json, from all of these
"""
