"""Floor 0: errors, names, time spans and sizes. Imports nothing of sdqueue and touches nothing outside."""
