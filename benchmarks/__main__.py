"""`python -m benchmarks`: Forge compared with raw SQL, as ratios within one run."""

from benchmarks.report import main

main()
