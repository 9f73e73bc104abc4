"""What few jobs have, put on top of a drawn one, piece by piece: stacks, parts of models, types, splits, experts' ways. A piece stays only
where the program accepts the job with it, so that jobs carry several."""
import copy
import functools
import pathlib

import yaml

MODULES = ["core_attn", "layernorm", "mla_up_proj", "mlp", "moe_act", "shared_experts", "mlp_act"]
OUTPUTS = ["linear_qkv", "core_attention", "linear_proj", "linear_fc1", "linear_fc2", "expert_fc2"]
RECIPES = ["delayed", "tensorwise", "rowwise", "rowwise_with_gw_hp", "blockwise", "mxfp8"]


@functools.cache
def stacks(root):
    """The shipped ones that train."""
    folder = pathlib.Path(root) / "platforms" / "software"
    return [path.stem for path in sorted(folder.glob("*.yaml")) if yaml.safe_load(path.read_text()).get("trains", True)]


def widen(rng, job, root, accepts):
    """The job with the pieces drawn for it that `accepts` lets stand."""
    for piece in draw_pieces(rng, job, stacks(root)):
        wider = with_piece(job, piece)
        if accepts(wider):
            job = wider
    return job


def draw_pieces(rng, job, names):
    pieces = [piece for chance, piece in possible_pieces(rng, job, names) if rng.random() < chance]
    rng.shuffle(pieces)
    return pieces


def possible_pieces(rng, job, names):
    """(probability, {path: value}) of each."""
    parallel = job["parallel"]
    yield 0.35, {"software": rng.choice(names)}
    yield from pieces_of_models(rng)
    yield from pieces_of_types(rng)
    yield 0.12, {"lora": {"rank": 8 * parallel["tp"], "targets": rng.choice([["linear_qkv", "linear_fc1"], ["linear_q", "linear_v"]]),
                          "dropout": rng.choice([0, 0.05]), "base": rng.choice(["plain", "nf4"])}}
    yield 0.1, {"optimizer.kind": "muon"}
    yield 0.1, {"optimizer.no_sync": True}
    yield 0.15, {"optimizer.device": "cpu"}
    yield 0.1, {"batch.document_tokens": rng.choice([128, 1024, 3000])}
    yield 0.15, {"cuda_graphs": rng.choice([True, ["attn"], ["attn", "mlp"], ["mamba"], ["moe_router", "moe_preprocess"]])}
    yield 0.1, {"recompute": {"modules": rng.sample(MODULES, 2)}}
    yield 0.1, {"recompute": {"kept": rng.sample(OUTPUTS, 2)}}
    yield 0.05, {"recompute": {"shards_inputs": True}}
    yield 0.1, {"offload": rng.choice([{"activations": True, "layers": 1}, {"activations": True, "share": 0.5}])}
    yield 0.15, {"overlap.tp_splits": rng.choice([1, 2, 8])}
    if parallel["pp"] > 1:
        yield 0.25, {"parallel.layers_per_stage": draw_split(rng, job)}
    if "moe" in job:
        yield from pieces_of_experts(rng)


def pieces_of_models(rng):
    yield 0.1, {"model.mla": {"q_lora": rng.choice([0, 384]), "kv_lora": rng.choice([128, 512]), "qk_nope": rng.choice([64, 128]),
                              "qk_rope": rng.choice([0, 64]), "v": rng.choice([64, 128])}}
    yield 0.1, {"model.mtp": rng.choice([1, 2])}
    yield 0.15, {"model.window": {"tokens": rng.choice([128, 512, 4096]), "full_every": rng.choice([0, 2, 4])}}
    for key in ("qk_norm", "post_norms", "attention_gate", "clamps_gate"):
        yield 0.15, {f"model.{key}": True}
    yield 0.1, {"model.positions": rng.choice(["learned", "alibi", "none"])}
    yield 0.1, {"model.norm": rng.choice(["layernorm", "rmsnorm"])}
    yield 0.1, {"model.attention_biases": rng.choice(["none", "qkv", "all"])}


def pieces_of_types(rng):
    yield 0.2, {"precision": rng.choice(["fp16", "fp32", "fp8", "fp4"])}
    yield 0.2, {"precision": {"compute": "fp8", "recipe": rng.choice(RECIPES)}}
    yield 0.1, {"precision": {"compute": "fp8", "attention": rng.choice(["fp8", "bf16"]), "param_gather": "fp8", "head": rng.choice(["fp8", "bf16"])}}
    yield 0.1, {"precision": {"gradients": "bf16", "moments": "bf16", "optimizer": rng.choice(["fp32", "bf16"])}}


def pieces_of_experts(rng):
    yield 0.1, {"moe.nodes_per_token": rng.choice([1, 2])}
    yield 0.1, {"moe.pad_to": rng.choice(["capacity", 16, 128])}
    yield 0.1, {"moe.chunks": rng.choice([2, 4]), "moe.chunk_recompute": rng.random() < 0.5}
    yield 0.1, {"overlap.ep": True, "overlap.delay_wgrad": True}
    yield 0.1, {"precision": {"compute": "bf16", "experts": "fp8", "recipe": "tensorwise"}}
    yield 0.1, {"parallel.etp": rng.choice([1, 2, 4])}


def draw_split(rng, job):
    """Layers over stages and chunks, none for some."""
    chunks, layers = job["parallel"]["pp"] * job["parallel"].get("vpp", 1), job["model"]["layers"]
    cuts = sorted(rng.randrange(layers + 1) for _ in range(chunks - 1))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, layers])]


def with_piece(job, piece):
    wider = copy.deepcopy(job)
    for path, value in piece.items():
        *sections, key = path.split(".")
        place = wider
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    return wider
