"""Messages about findings: each once when it opens, gets worse, or closes, to the channels of the settings."""
