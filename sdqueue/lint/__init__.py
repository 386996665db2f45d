"""Floor 3: what is wrong with units, judged from what boot makes of them.

Knows the graph, the outlook of transactions and the lines of unit files. Must not know where they
came from: `sdqueue.cli.lint_world` looks, this floor thinks.
"""
