"""Programs that one process compiles are read by the next."""

import json
import os
import subprocess
import sys

SCRIPT = """
import jax
import equistein as es
from equistein.cli import main
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append("hits" in name))
es.enable_compilation_cache()
jax.jit(lambda x: x * 2 + 1)(3.0)
print(sum(hits))
main(["doctor", "--json"])
"""


def test_a_second_process_compiles_nothing(tmp_path):
    jaxs = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
    kept = {name: value for name, value in os.environ.items() if name not in jaxs}
    environment = kept | {"EQUISTEIN_CACHE": str(tmp_path)}

    def run():
        words = [sys.executable, "-c", SCRIPT]
        said = subprocess.check_output(words, env=environment, text=True)
        hits, about = said.split("\n", 1)
        return int(hits), *json.loads(about)["programs"].values()

    hits, num, used = run()
    assert (hits, used) == (0, 0)
    assert num >= 1
    assert run()[:2] == (num, num)
