"""Random jobs on a cluster: every schedule, order, sharding, overlap, recomputation, offload, context parallelism, experts, faults."""
from clusters import divisors, gpus_of

FP8_GPUS = ["h100-sxm5-80g", "h800-sxm", "b200-sxm"]
ORDERS = ["tp-cp-ep-dp-pp"] * 4 + ["tp-cp-ep-pp-dp", "dp-tp-cp-ep-pp", "pp-tp-cp-ep-dp", "cp-tp-ep-dp-pp"]


def draw_job(rng, cluster, with_experts):
    """A job of at most the cluster's GPUs. It may ask for what the job format refuses; the program says so."""
    parallel = draw_layout(rng, gpus_of(cluster))
    schedule = draw_schedule(rng, parallel)
    job = {
        "model": draw_model(rng, parallel, with_experts),
        "cluster": cluster,
        "gpus": gpus_in({"parallel": parallel}),
        "parallel": parallel,
        "schedule": schedule,
        "batch": draw_batch(rng, parallel, schedule),
        "optimizer": draw_optimizer(rng, parallel, with_experts),
        "recompute": rng.choice(["none", "none", "selective", "full", {"full_layers": 1}, {"modules": ["layernorm"]}]),
        "overlap": draw_overlap(rng),
        "precision": "fp8" if str(cluster["gpu"]) in FP8_GPUS and rng.random() < 0.2 else "bf16",
        "software": rng.choice(["megatron-core"] * 6 + ["torch-fsdp", "megatron-2021", "megatron-deepspeed-2022", "torch-3d", "custom"]),
        "simulation": draw_simulation(rng),
    }
    if rng.random() < 0.1:
        job["offload"] = {"activations": True}
    elif not with_experts and on_host_in_shards(job["optimizer"]) and parallel["dp"] * parallel["cp"] > 1:
        job["offload"] = {"weights": True}
    if rng.random() < 0.1 and parallel["cp"] == 1:
        job["attention"] = "unfused"
    if with_experts:
        add_experts(rng, job)
    elif rng.random() < 0.15:
        job["model"]["parallel_residual"] = rng.choice(["one_norm", "two_norms"])
        job["software"] = {"like": job["software"], "merges_branches": rng.random() < 0.5}
    return job


def add_mixer(rng, job):
    """Layers that are not attention, in one job in six: in the place of most, or of one block each."""
    model, parallel = job["model"], job["parallel"]
    if "parallel_residual" in model or rng.random() < 5 / 6:
        return
    groups = parallel["tp"] * rng.choice([1, 2])
    model["mixer"] = {"kind": rng.choice(["mamba2", "gated_delta"]), "heads": groups * parallel["cp"] * rng.choice([1, 2]),
                      "head_dim": rng.choice([64, 128]), "groups": groups, "state": rng.choice([64, 128])}
    if rng.random() < 0.5:
        every = rng.choice([0, 2, 4])
        model["mixer"]["attention_every"] = every if every <= model["layers"] else 0
        return
    needed = "M*E" if "moe" in model else "M-*"
    if model["layers"] >= len(needed):
        model["pattern"] = "".join(rng.choice("M" + needed) for _ in range(model["layers"] - len(needed))) + needed
        for key in ("first_dense", "every"):
            model.get("moe", {}).pop(key, None)


def draw_layout(rng, most):
    """tp, cp, pp and dp whose product is at most so many GPUs, more than half of them mostly."""
    while True:
        layout = {
            "tp": rng.choice([1, 1, 2, 2, 4, 8]),
            "cp": rng.choice([1, 1, 1, 1, 2, 4]),
            "pp": rng.choice([1, 1, 2, 2, 4]),
            "dp": rng.choice([1, 2, 2, 3, 4, 4, 8, 16]),
        }
        gpus = layout["tp"] * layout["cp"] * layout["pp"] * layout["dp"]
        if 2 <= gpus <= most and (2 * gpus > most or rng.random() < 0.1):
            break
    if layout["tp"] > 1:
        layout["sp"] = rng.random() < 0.8
    if layout["cp"] > 1:
        layout["cp_comm"] = rng.choice(["ring", "all-gather", "all-to-all"])
    layout["order"] = rng.choice(ORDERS)
    return layout


def draw_schedule(rng, parallel):
    if parallel["pp"] == 1:
        return "1f1b"
    names = ["1f1b", "1f1b", "interleaved-1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "dualpipe"]
    schedule = rng.choice(names)
    if schedule in ("interleaved-1f1b", "zb-v"):
        parallel["vpp"] = 2
    return schedule


def draw_model(rng, parallel, with_experts):
    head = rng.choice([64, 128])
    heads = parallel["tp"] * parallel["cp"] * rng.choice([1, 2, 4])
    chunks = parallel["pp"] * parallel.get("vpp", 1)
    layers = chunks * rng.choice([1, 2, 2, 3])
    if parallel.get("vpp", 1) == 1:
        layers += rng.choice([0, 0, 1])
    model = {
        "name": "drawn",
        "layers": layers,
        "hidden": head * heads * rng.choice([1, 2]),
        "heads": heads,
        "kv_heads": rng.choice([heads, heads, parallel["tp"] * parallel["cp"]]),
        "head_dim": head,
        "ffn": head * heads * 4,
        "activation": rng.choice(["gelu", "swiglu", "swiglu", "geglu", "relu2"]),
        "vocab": rng.choice([0, 1000, 32000, 50257]),
        "tied_embeddings": rng.random() < 0.2,
    }
    if with_experts:
        experts = rng.choice([4, 8, 16, 32])
        first = rng.choice([0, 0, 1])
        model["moe"] = {"experts": experts, "top_k": rng.choice([1, 2, 4]), "shared": rng.choice([0, 0, 1]), "ffn": head * heads,
                        "first_dense": first if first < layers else 0, "every": rng.choice([1, 1, 1, 2])}
    return model


def draw_batch(rng, parallel, schedule):
    micro = rng.choice([1, 1, 2])
    number = rng.choice([1, 2, 4, 4, 8])
    pp = parallel["pp"]
    if schedule in ("dualpipe", "zb-v"):
        number = max(number, 2 * pp)
    if schedule == "interleaved-1f1b":
        number = max(number, pp)
    sequence = rng.choice([1024, 2048, 4096, 8192])
    return {"global": micro * number * parallel["dp"], "micro": micro, "sequence": sequence}


def on_host_in_shards(optimizer):
    return optimizer["sharding"] == "zero3" and optimizer.get("device") == "cpu"


def draw_optimizer(rng, parallel, with_experts):
    optimizer = {"sharding": rng.choice(["none", "zero1", "zero1", "zero2", "zero3"])}
    if rng.random() < 0.05:
        optimizer["device"] = "cpu"
    if rng.random() < 0.1 and not with_experts and optimizer["sharding"] != "none":
        optimizer["shard_group"] = rng.choice(divisors(parallel["dp"] * parallel["cp"]))
    return optimizer


def draw_overlap(rng):
    overlap = {}
    for key in ("tp", "cp", "pp", "dp_gradients", "dp_parameters"):
        if rng.random() < 0.6:
            overlap[key] = rng.random() < 0.6
    return overlap


def draw_simulation(rng):
    return {
        "granularity": rng.choice(["stage", "layer", "layer", "operator"]),
        "collectives": rng.choice(["ring", "ring", "step", "closed", "auto"]),
        "algorithm": rng.choice(["auto"] * 5 + ["ring", "tree", "halving-doubling", "hierarchical"]),
    }


def add_experts(rng, job):
    parallel = job["parallel"]
    if parallel["tp"] > 1:
        parallel["sp"] = True
    parallel["etp"] = rng.choice([1, 1, 1, parallel["tp"]])
    ranks = parallel["tp"] * parallel["cp"] * parallel["dp"]
    fitting = [each for each in (1, 2, 4, 8, 16) if job["model"]["moe"]["experts"] % each == 0 and ranks % (each * parallel["etp"]) == 0]
    parallel["ep"] = rng.choice(fitting)
    if not parallel["order"].endswith("-pp"):
        parallel["order"] = "tp-cp-ep-dp-pp"
    routing = ["balanced", "balanced", {"zipf": 0.4}, {"dirichlet": 0.5}, {"zipf": 0.8, "senders": "sampled"}, {"zipf": 0.5, "senders": "own"}]
    together = job["schedule"] in ("1f1b", "gpipe", "interleaved-1f1b")  # both gradients of a layer, as its recomputation needs
    job["moe"] = {
        "routing": rng.choice(routing),
        "dispatcher": rng.choice(["alltoall", "alltoall", "allgather", "hierarchical"]),
        "chunks": rng.choice([1, 1, 1, 2, "auto"]) if together else 1,
    }
    if job["moe"]["chunks"] == 1 and job["schedule"] in ("1f1b", "interleaved-1f1b", "dualpipe") and "offload" not in job:
        job["overlap"]["ep"] = rng.random() < 0.3
    if rng.random() < 0.2:
        job["moe"]["capacity_factor"] = rng.choice([1, 1.25, 2])


def gpus_in(job):
    parallel = job["parallel"]
    return parallel["tp"] * parallel["cp"] * parallel["pp"] * parallel["dp"]


def is_uneven(job):
    """Tokens are routed unevenly."""
    return job.get("moe", {}).get("routing", "balanced") != "balanced"


def draw_slow_part(rng, job):
    """What may be slow in the job, as the fault without its factor."""
    cluster, gpus = job["cluster"], gpus_in(job)
    parts = [f"gpu {rng.randrange(gpus)}", f"gpu {rng.randrange(gpus)}", f"node {rng.randrange(-(-gpus // cluster['gpus_per_node']))}"]
    if "nics" in cluster:
        rails = min(cluster["nics"]["per_node"], cluster["gpus_per_node"])
        parts += [f"nic {rng.randrange(gpus)}", f"rail {rng.randrange(rails)}"]
        if cluster["network"]["kind"] in ("leaf_spine", "rail_optimised", "fat_tree"):
            parts.append("spine")
    return rng.choice(parts)


def draw_faults(rng, job):
    """What is slow in the job's step, one part or two."""
    return [f"{draw_slow_part(rng, job)} slow {rng.choice([1.0001, 1.3, 2, 5])}" for _ in range(rng.choice([1, 1, 2]))]


def draw_failure(rng, job, step_s):
    """A GPU or a port that dies inside a step of that length."""
    part = rng.choice(["gpu", "gpu", "nic"] if "nics" in job["cluster"] else ["gpu"])
    return f"{part} {rng.randrange(gpus_in(job))} at {step_s * rng.random():.9f} s"
