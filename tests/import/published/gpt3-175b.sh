#!/bin/bash
# The settings of examples/gpt3/train_gpt3_175b_distributed.sh of NVIDIA/Megatron-LM (core 0.13; BSD-3-Clause), in a frame of our own, on
# 128 nodes as its defaults take one.
options=" \
  --num-layers 96 --hidden-size 12288 --num-attention-heads 96 \
  --seq-length 2048 --max-position-embeddings 2048 --attention-backend auto \
  --micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375 \
  --train-iters 500000 --fp16 --lr 6.0e-5 --clip-grad 1.0 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 \
  --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt"
#SBATCH --nodes=128
#SBATCH --ntasks-per-node=8
srun -l sh -c "python pretrain_gpt.py ${options} --data-path $1"
