"""mqreplay replays the decisions of an Apache RocketMQ cluster and reports what went wrong."""

__version__ = "0.2.0"
