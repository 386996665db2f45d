"""Floor 0: errors, names, points and spans of time, sizes. Imports nothing of the floors above."""
