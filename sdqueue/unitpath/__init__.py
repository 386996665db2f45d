"""Floor 4: looks into a search path of unit files, below a root or without one, and reads safely.

Knows directories, links and what may be opened. Decides nothing: what an entry means is
`sdqueue.unitfile`'s business.
"""

from sdqueue.unitpath.search import search_path
from sdqueue.unitpath.tree import Added, Tree

__all__ = ["Added", "Tree", "search_path"]
