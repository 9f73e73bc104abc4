#!/bin/bash
# The settings of examples/llama/train_llama3_8b_h100_fp8.sh of NVIDIA/Megatron-LM (core 0.16; BSD-3-Clause), in a frame of our own: data, logs
# and checkpoints are left out.
GPUS_PER_NODE=8
NUM_NODES=1
NODE_RANK=${NODE_RANK:-0}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DTYPE="fp8"
SEQ_LENGTH=8192

if [ ! -f "$PRETRAIN" ]; then
  echo "only a run would tell"
fi

MODEL=(
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32   # Llama 3 8B
  --group-query-attention --num-query-groups 8 --kv-channels 128
  --seq-length $SEQ_LENGTH --max-position-embeddings $SEQ_LENGTH
  --position-embedding-type rope --rotary-base 1000000
  --attention-dropout 0.0 --hidden-dropout 0.0 --swiglu
  --attention-backend fused
  --untie-embeddings-and-output-weights --disable-bias-linear
)
TRAINING=(
  --micro-batch-size 1 --global-batch-size 128 --train-samples 1953125000
  --lr 0.00015 --adam-beta2 0.95 --clip-grad 1.0
  --bf16 --grad-reduce-in-bf16 --cross-entropy-loss-fusion
)
NARROW=()
if [[ "$DTYPE" == "fp8" ]]; then
  NARROW+=(
    "--fp8-format hybrid"
    "--fp8-amax-history-len 1024"
  )
else
  NARROW+=("--fp8-format none")
fi
DDP=(--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
TRAINING+=("${DDP[@]}")

torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES --node_rank $NODE_RANK \
  pretrain_gpt.py \
  ${MODEL[@]} ${TRAINING[@]} ${NARROW[@]} \
  --tensor-model-parallel-size 1 --context-parallel-size 1 --sequence-parallel \
  --vocab-size 128256 --tokenizer-type NullTokenizer
