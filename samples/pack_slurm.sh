#!/usr/bin/env bash
# Packs a folder on a Slurm cluster: each task of an array packs one shard, and tasks need not run at the same time.
#
#   sbatch --array=0-7 pack_slurm.sh PHOTOS OUT/train.h5 --resize 64 --center-crop 64x64
#
# All nodes must see both folders. The shards OUT/train-00000-of-00008.h5 and so on are read as one dataset by the name
# 'OUT/train-*-of-00008.h5'. A task that is requeued goes on where it stopped; submit the array again to repeat those
# that failed: shards that are complete stay. H5PACK names the program.
#SBATCH --job-name=h5pack
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
#SBATCH --requeue
set -euo pipefail
if [[ $# -lt 2 || $1 == -* ]]; then
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
shard=$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
exec "${H5PACK:-h5pack}" folder "$1" -o "$2" --shard "$shard" --resume --threads "${SLURM_CPUS_PER_TASK:-1}" "${@:3}"
