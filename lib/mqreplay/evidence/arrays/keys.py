"""Key columns that frames of several modules share."""

QUEUE = ("broker_name", "topic", "queue_id")
KEY = ("consumer_group", "topic", "broker_name", "queue_id")  # of a queue's offset
