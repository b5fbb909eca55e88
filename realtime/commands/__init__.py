"""One file for each command: what it asks, what it prints; knows no thread and no picture."""
