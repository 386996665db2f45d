"""sdqueue: a job queue for one Linux box, in which every job is a transient systemd unit."""

__version__ = "0.1.0"
