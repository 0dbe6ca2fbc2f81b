"""`python -m benchmarks`: Forge against the limit of raw SQL, as ratios within one run."""

from benchmarks.report import main

main()
