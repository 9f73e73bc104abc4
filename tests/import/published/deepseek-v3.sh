# The model of examples/megatron_fsdp/sbatch_mfsdp_deepseek_v3.sh of NVIDIA/Megatron-LM (core 0.16; BSD-3-Clause), which hands its command on
# as a text, without the recomputation of whole layers of experts; the layout is an example of Megatron's documentation shortened to it.
TP=${TP:-1}
EP=${EP:-64}
ARGS=(
  --tensor-model-parallel-size ${TP} --expert-model-parallel-size ${EP} --expert-tensor-parallel-size 1
  --pipeline-model-parallel-size 16 --pipeline-model-parallel-layout "Et*3|(tt|)*29,m|L"
  --use-distributed-optimizer --micro-batch-size 1 --global-batch-size 2048 --seq-length 4096 --vocab-size 129280
  --recompute-granularity selective --recompute-modules mla_up_proj layernorm
  --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --kv-channels 128
  --position-embedding-type rope --normalization RMSNorm --swiglu --untie-embeddings-and-output-weights --disable-bias-linear
  --multi-latent-attention --attention-dropout 0.0 --hidden-dropout 0.0 --qk-layernorm
  --num-experts 256 --moe-layer-freq [0]*3+[1]*58 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048
  --moe-router-topk 8 --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep --moe-grouped-gemm
  --moe-router-group-topk 4 --moe-router-num-groups 8
  --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128
  --mtp-num-layers 1 --bf16
)
COMMAND="
cd ${MEGATRON_PATH};
python ${MEGATRON_PATH}/pretrain_gpt.py ${ARGS[@]}"
sbatch <<EOF
#!/bin/bash
srun bash -c "${COMMAND}"
EOF
