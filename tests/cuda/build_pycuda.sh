#!/usr/bin/env bash
# Installs PyCUDA on a machine without a GPU, without NVIDIA's driver and without CUDA's compiler; needs g++ alone.
#
#     tests/cuda/build_pycuda.sh PYTHON [FOLDER]
#
# PyCUDA comes as source only. To build it takes CUDA's headers, which pip has, and a libcuda to link against, which may
# be empty: what is missing in it is looked up when PyCUDA is imported, in the library of a driver or in the stand-in of
# test_back_ends.py. PYTHON is the interpreter of the environment that it is installed into; with FOLDER a wheel for it
# is left there instead, and the environment stays as it is.
set -euo pipefail
python="$(command -v "$1")"
version=2026.1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$python" -m pip install -q --no-deps --target "$work/headers" \
  'nvidia-cuda-runtime>=13,<14' 'nvidia-cuda-crt>=13,<14' 'nvidia-cuda-profiler-api>=13,<14'
include="$(dirname "$(find "$work/headers" -name cuda.h)")"

echo | g++ -shared -fPIC -x c - -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so"

"$python" -m pip download -q --no-deps --no-binary pycuda "pycuda==$version" -d "$work"
tar -xzf "$work"/pycuda-*.tar.gz -C "$work"
# Not optimised: it is tested, not measured.
cat > "$work/pycuda-$version/siteconf.py" <<SITE
CUDA_INC_DIR = ["$include"]
CUDADRV_LIB_DIR = ["$work"]
CUDA_ENABLE_CURAND = False
CXXFLAGS = ["-O0", "-g0", "-w"]
SITE
# The flag, which has to come first, keeps libcuda among what is loaded although nothing is found in it now.
export LDFLAGS=-Wl,--no-as-needed
if [ "$#" -gt 1 ]; then
  "$python" -m pip wheel -q --no-deps -w "$2" "$work/pycuda-$version"
else
  "$python" -m pip install -q "$work/pycuda-$version"
fi
