"""Members of groups, and the owners of queues."""
