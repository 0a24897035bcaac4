"""Who gets which message, and when: watch, channels, figures for Prometheus."""
