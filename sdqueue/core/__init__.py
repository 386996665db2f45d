"""Floor 1: what the queue is and how it decides. Pure: no clock, no file, no bus; time is a parameter."""
