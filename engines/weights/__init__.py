"""The small embedded models; knows where they come from, not what they do."""
