"""Messages: deliveries, and orders of POP."""
