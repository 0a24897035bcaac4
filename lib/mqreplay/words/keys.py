"""Keys of rows: names of columns that several tables share, each in one order.

The keys of queues end with the broker's name and the id that the queue has there.
"""

BROKER = ("broker_name", "broker_id")
SLAVE = ("broker_name", "slave_id")
GROUP = "consumer_group"
GROUP_TOPIC = (GROUP, "topic")
GROUP_TOPIC_BROKER = (GROUP, "topic", "broker_name")
GROUP_QUEUE = (GROUP, "topic", "broker_name", "queue_id")  # of an offset
CLIENT_QUEUE = (*GROUP_QUEUE, "client_id")  # of a queue that a client of the group holds
MEMBER = (GROUP, "client_id")
MEMBER_TOPIC = (*MEMBER, "topic")
QUEUE = ("broker_name", "topic", "queue_id")
TOPIC_QUEUE = ("broker_name", "queue_id")  # of one topic
