// The keys of `memory` in platforms/software/*.yaml.
#include "sim/cost/software_keys.hpp"

namespace rehearse::sim {

using config::Dimension;
using config::Key;
using config::Keys;
using config::Node;
using config::truth;

namespace {

const config::Names<workloads::TensorOrder>& tensor_orders() {
  static const config::Names<workloads::TensorOrder> names{{"megatron-core", workloads::TensorOrder::megatron_core},
                                                           {"megatron-2021", workloads::TensorOrder::megatron_2021},
                                                           {"nanotron", workloads::TensorOrder::nanotron},
                                                           {"torch", workloads::TensorOrder::torch}};
  return names;
}

const config::Names<workloads::HostAhead>& leads_of_hosts() {
  static const config::Names<workloads::HostAhead> names{{"units", workloads::HostAhead::units},
                                                         {"none", workloads::HostAhead::none},
                                                         {"warm-up", workloads::HostAhead::warm_up},
                                                         {"queue", workloads::HostAhead::queue},
                                                         {"messages", workloads::HostAhead::messages}};
  return names;
}

const config::Names<workloads::Recorded>& recorded_collectives() {
  static const config::Names<workloads::Recorded> names{
      {"all", workloads::Recorded::all}, {"beside", workloads::Recorded::beside}, {"none", workloads::Recorded::none}};
  return names;
}

const config::Names<workloads::MasterRemainders>& remainders_of_masters() {
  static const config::Names<workloads::MasterRemainders> names{{"never", workloads::MasterRemainders::never},
                                                                {"narrow_moments", workloads::MasterRemainders::narrow_moments},
                                                                {"always", workloads::MasterRemainders::always}};
  return names;
}

const config::Names<Nccl>& nccl_releases() {
  static const config::Names<Nccl> names{{"none", Nccl::none},  {"2.10", Nccl::v2_10}, {"2.14", Nccl::v2_14},
                                         {"2.18", Nccl::v2_18}, {"2.19", Nccl::v2_19}, {"2.23", Nccl::v2_23}};
  return names;
}

}  // namespace

const Keys<MemoryOverhead>& memory_keys() {
  using Memory = MemoryOverhead;
  using Habits = workloads::MemoryHabits;
  using K = Key<Memory>;
  const auto habit = [](auto Habits::*field) {
    return [field](auto& memory) -> auto& { return memory.habits.*field; };
  };
  static const Keys<Memory> keys{
      K("context", &Memory::context_bytes, config::quantity(Dimension::bytes), "CUDA context and the libraries' workspaces.").required(),
      K("communicator", &Memory::communicator_bytes, config::quantity(Dimension::bytes),
        "Buffers of each communicator, where `nccl` does not tell them (other vendors than NVIDIA and AMD).")
          .required(),
      K("nccl", &Memory::nccl, config::choice(nccl_releases()),
        "The newest of these releases that its NCCL reaches: buffers by what it connects."),
      K("world_group", &Memory::world_group, truth(), "A communicator of all ranks beside those of the directions of parallelism."),
      K("model_group", &Memory::model_group, truth(), "A communicator of the ranks that share a replica."),
      K("lone_groups", &Memory::lone_groups, truth(), "Groups of tp, dp and the model have a communicator where they are one rank."),
      K("fragmentation", &Memory::fragmentation, config::number(0, 1),
        "What the allocator holds beyond the tensors' peak, as a share of it.")
          .required(),
      K("buckets", habit(&Habits::bucket_bytes), config::quantity(Dimension::bytes),
        "Buffers in which gradients are reduced and weights gathered, kept for good, with ZeRO.")
          .required(),
      K("zero3_buckets", habit(&Habits::zero3_bucket_bytes), config::quantity(Dimension::bytes),
        "The same with ZeRO-3, where they are others."),
      K("live_parameters", habit(&Habits::live_parameters), config::number(0, 1e12),
        "ZeRO-3 gathers tensor by tensor and has at most so many parameters at a time; gradients pass through the buckets."),
      K("update", habit(&Habits::update_bytes), config::number(0, 64),
        "ZeRO: bytes that the update takes beside gradients and states, for each parameter of the rank's shard."),
      K("update_at_once", habit(&Habits::update_at_once), config::number(1, 1e12),
        "ZeRO-3: it works on at most so many parameters at a time."),
      K("foreach_update", habit(&Habits::foreach_update), truth(),
        "torch's foreach Adam: the roots of all second moments of the rank are there at once in the update."),
      K("gradient_placeholders", habit(&Habits::gradient_placeholders), truth(),
        "The weight-gradient product adds into the buffer and hands autograd an empty tensor instead.")
          .required(),
      K("half_gradients", habit(&Habits::half_gradients), truth(), "Gradients stay in the weights' type as autograd makes them.")
          .required(),
      K("main_gradients", habit(&Habits::main_gradients), truth(),
        "Below ZeRO: gradients in fewer bits are copied to FP32 for the update, which keeps the copies."),
      K("master_remainders", habit(&Habits::master_remainders), config::choice(remainders_of_masters()),
        "ZeRO-1 and 2: of an FP32 master copy the bits alone are kept that BF16 weights lack, always or where moments have fewer bits."),
      K("scores_buffer", habit(&Habits::scores_buffer), truth(),
        "Unfused attention: its first product is handed a tensor of the scores' size that all layers share, kept for good."),
      K("narrow_gradients", habit(&Habits::narrow_gradients), truth(),
        "Gradients are added up in the weights' type, unless the job names theirs."),
      K("loss", habit(&Habits::loss_bytes), config::number(0, 64),
        "Bytes per logit that the loss holds at most, its logits included; 0: by the fusion."),
      K("outputs_kept", habit(&Habits::outputs_kept), truth(),
        "What the model returned, logits in fp32, is held until the backward of its micro-batch is over."),
      K("activation_in_place", habit(&Habits::activation_in_place), truth(),
        "A gated MLP's fused activation writes the gradients of its inputs over them."),
      K("pieces_apart", habit(&Habits::pieces_apart), truth(),
        "A head in pieces (loss_pieces) is compiled piece by piece: each keeps its logits and its cast of the table until its backward."),
      K("kept_gathers", habit(&Habits::kept_gathers), config::number(0, 4),
        "Tensor parallelism: of a layer's gathered input, the share that is held up until its backward."),
      K("ddp_buckets", habit(&Habits::ddp_buckets), truth(),
        "Without ZeRO: gradients as autograd makes them lie beside those that are added up."),
      K("added_after_backward", habit(&Habits::added_after_backward), truth(),
        "Gradients stay in the weights' type until the backward of their micro-batch is over, and are added up then."),
      K("gathers_copies", habit(&Habits::gathers_copies), truth(),
        "ZeRO-1 and 2: new weights are gathered from a copy of the rank's piece into two copies of all of them."),
      K("order", habit(&Habits::order), config::choice(tensor_orders()), "Whose tensors, in whose order, the allocator is asked for."),
      K("host_ahead", habit(&Habits::host_ahead), config::choice(leads_of_hosts()),
        "How far the host is ahead of the GPU, and so how late tensors of collectives come free."),
      K("launches", habit(&Habits::launches), mapping(pass_keys()),
        "Launches that the host issues for a layer, of which the GPU's queue takes 1024 (host_ahead: queue)."),
      K("recorded", habit(&Habits::recorded), config::choice(recorded_collectives()),
        "Collectives whose tensors come free that late, by the release of PyTorch."),
      K("expandable_segments", habit(&Habits::expandable_segments), truth(),
        "Its launcher sets PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which NVIDIA's GPUs can do."),
      K("gradients_freed", habit(&Habits::gradients_freed), truth(),
        "Gradients are given back after the update, and made anew, unit by unit, by the next backward."),
      K("frozen_inputs", habit(&Habits::frozen_inputs), truth(),
        "FSDP with adapters: a recomputed layer's input and its gradient stay until the backward of the micro-batch is over."),
      K("narrow_copies", habit(&Habits::narrow_copies), truth(),
        "Below ZeRO-3, with products in fewer bits than the weights: two copies of layers' weights in the products' type, kept for good."),
      K("offloads_chunks", habit(&Habits::offloads_chunks), truth(),
        "Activations leave chunk by chunk while the next forward runs, and come back into two buffers of a chunk that are kept for good."),
      K("saves_weights", habit(&Habits::saves_weights), truth(),
        "ZeRO-3: products keep the weights that they read until their backward (DeepSpeed with mem_efficient_linear: false)."),
      K("loads_whole", habit(&Habits::loads_whole), truth(),
        "ZeRO-3: the whole model lies on the GPU before it is cut into shards (DeepSpeed without zero.Init)."),
      K("joins_on_gpu", habit(&Habits::joins_on_gpu), truth(),
        "ZeRO-1 and 2: the model lies on the GPU, tensor by tensor, before it is joined in one buffer (DeepSpeed since February 2026)."),
      K("scans_layers", habit(&Habits::scans_layers), truth(),
        "Layers are a loop (jax.lax.scan) that saves every operand of a derivative, where they are not computed again."),
      K("planned", habit(&Habits::planned), truth(),
        "A compiler plans every buffer of the step: the least that it can do with is counted."),
      K("sharded_master", habit(&Habits::sharded_master), truth(), "ZeRO-3: the shard of the weights is their master copy.").required(),
  };
  return keys;
}

void require_launches(const Node& node, const workloads::MemoryHabits& habits) {
  using workloads::HostAhead;
  const bool counts = habits.host_ahead != HostAhead::units && habits.host_ahead != HostAhead::none;
  if (counts && habits.launches.forward + habits.launches.backward == 0)
    node.at("memory")
        .at("host_ahead")
        .fail("how far the queue reaches is not known", "memory.launches: {forward: N, backward: N} of a layer");
}

}  // namespace rehearse::sim
