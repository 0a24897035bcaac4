"""DataFrame -> DataFrame: silver rows in, gold rows out, one file a gold table. Reads nothing, writes nothing."""
