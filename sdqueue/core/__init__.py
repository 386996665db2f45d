"""Floor 1: what the queue is and how it decides. No clock, no file, no bus; time is a parameter."""
