"""What scripts and notebooks use: `mqreplay.open`."""
