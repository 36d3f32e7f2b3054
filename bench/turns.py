"""Two sides of the same calls in turns, for bench/python.py and bench/bridge.py."""

import statistics
import timeit

ROUNDS = 11


def compare(ours, theirs, names, calls, versions):
    """ours, theirs: {row: a function that does it once}. Prints ns a call, and the median of theirs / ours over the rounds."""
    print(f"{versions}; ns a call, medians of {ROUNDS} rounds of {calls}")
    for row in ours:
        times = [(timeit.timeit(ours[row], number=calls), timeit.timeit(theirs[row], number=calls)) for _ in range(ROUNDS)]
        mine, other = (statistics.median(side) / calls * 1e9 for side in zip(*times))
        ratio = statistics.median(b / a for a, b in times)
        print(f"{row:26} {names[0]} {mine:8.0f}   {names[1]} {other:8.0f}   ratio {ratio:.2f}")
