"""The jobs of the benchmarks behind `forge server`, with the settings of the run."""

import os

from benchmarks.jobs_app import no_op
from forge import Forge

app = Forge.from_file(os.environ["FORGE_BENCH_CONFIG"])
app.register(no_op)
