"""Answers about a judged warehouse as plain data: what the commands, notebooks, agents and pages show."""
