"""mqreplay replays what an Apache RocketMQ cluster decided, from what it left behind."""

__version__ = "0.1.0"
