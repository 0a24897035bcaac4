"""What a user types and sees: commands, the terminal, explain, sql, doctor."""
