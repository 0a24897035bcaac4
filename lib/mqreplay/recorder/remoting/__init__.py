"""A client of RocketMQ's remoting protocol that can only read. Standard library and asyncio."""
