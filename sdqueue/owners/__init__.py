"""Who uses what a lane is for without being the queue's: detectors, and what they amount to.

Touches the outside and decides nothing: it reads /proc, /sys and the vendor's library where that
is installed, below a root that may be a test's own. `detectors` is the table of them, `sweep` one
look by all of them, `judge` the rules by which evidence becomes ACTIVE, RESIDENT, HOLDER or
UNKNOWN. The parsers and the judge need nothing of the outside.
"""
