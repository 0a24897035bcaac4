"""Recordings of a running cluster, of a broker's store, and of files on disk. Knows core and decode; needs no Spark.

network       polls name servers and brokers; remoting: the protocol, as a client that only reads
store         copies the files of brokers on this machine; store_folder, whole_copy: where they are, and complete copies
imports       files that operators have on disk
bundle        a recording as one file to share, with names replaced
record_files  the growing files of a recording; recording_folder, gzip_member: what an earlier run left in them
durable, own_files    writes that survive a power loss, and errors of the own disk
broker_identity       the broker that a configuration names
"""
