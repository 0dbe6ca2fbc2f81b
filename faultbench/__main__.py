"""`python -m faultbench`: run the faults and print the table."""

from faultbench.command import main

main()
