"""Log files of clients, brokers and name servers, made into records."""
