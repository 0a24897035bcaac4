"""Recordings of a running cluster and of a broker's store. Uses the standard library, core and decode.

network       polls name servers and brokers; remoting: the protocol, as a client that only reads
store         copies the files of brokers on this machine; store_folder, whole_copy: where they are, and complete copies
record_files  the growing files of a recording; recording_folder: what an earlier run left in them
durable       writes that survive a power loss, and errors of the own disk
broker_identity       the broker that a configuration names
"""
