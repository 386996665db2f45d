"""Floor 0: errors, names, time spans and sizes. Imports nothing of sdqueue, touches no outside."""
