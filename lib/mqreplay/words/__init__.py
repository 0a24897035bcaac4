"""What every room says alike: errors, numbers with nouns, printable text, severities."""
