"""The exit statuses of the commands; `mqreplay --help` says what each means."""

DONE, FAILED, BAD_INPUT, LOCKED, CRASHED = 0, 1, 2, 3, 4
