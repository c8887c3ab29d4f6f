"""Programs that one process compiles are read by the next."""

import os
import subprocess
import sys

SCRIPT = """
import jax
import equistein as es
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append("hits" in name))
es.enable_compilation_cache()
jax.jit(lambda x: x * 2 + 1)(3.0)
print(sum(hits))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    jaxs = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
    kept = {name: value for name, value in os.environ.items() if name not in jaxs}
    environment = kept | {"EQUISTEIN_CACHE": str(tmp_path)}

    def run():
        words = [sys.executable, "-c", SCRIPT]
        return int(subprocess.check_output(words, env=environment, text=True))

    assert run() == 0
    num = len([*tmp_path.rglob("*-cache")])
    assert num >= 1
    assert run() == num
