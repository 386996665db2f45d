"""Floor 5: the controller, a thin shell around `core`: events in, actions done, nothing decided."""
