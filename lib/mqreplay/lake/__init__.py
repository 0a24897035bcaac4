"""Table contracts, Delta tables, stores, the Spark session, and the warehouse's lock. Knows no RocketMQ."""
