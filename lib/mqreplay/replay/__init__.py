"""The replay of one day: its passes, and the shards that they work on."""
