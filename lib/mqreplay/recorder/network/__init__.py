"""The recorder of a running cluster: polls name servers and brokers, and writes a recording."""
