"""What can be changed and seen while a run goes on: one desk, for the control page and for Python alike."""
