"""`make try`: the main job, for a person to watch."""
