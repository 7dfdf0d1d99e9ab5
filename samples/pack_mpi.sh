#!/usr/bin/env bash
# Packs a folder with MPI: each process packs one shard, and there are as many shards as processes.
#
#   mpirun -n 8 --hostfile hosts bash pack_mpi.sh PHOTOS OUT/train.h5 --resize 64 --center-crop 64x64
#
# All machines must see both folders. The shards OUT/train-00000-of-00008.h5 and so on are read as one dataset by the
# name 'OUT/train-*-of-00008.h5'. After a failure, run the same command again: shards that are complete stay, the others
# go on where they stopped. H5PACK names the program, THREADS the threads of each process.
set -euo pipefail
if [[ $# -lt 2 || $1 == -* ]]; then
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
exec "${H5PACK:-h5pack}" folder "$1" -o "$2" --shard-from-env --resume --threads "${THREADS:-1}" "${@:3}"
