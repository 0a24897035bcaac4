"""Silver rows -> members, owners, clocks, outages, holes: spans that several decisions need. Pure functions."""
