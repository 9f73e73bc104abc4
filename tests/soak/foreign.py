"""Other programs' files: published configurations, tables of nccl-tests, traces of PyTorch's profiler, as one changes them by hand."""
import json

# By the name of the published file (tests/import/published): whose it is.
FORMATS = {".slurm": "megatron", ".sh": "megatron", "mcore-te-tp2-pp2.yaml": "megatron", ".toml": "torchtitan", "nanotron.yaml": "nanotron",
           "mpt-7b.yaml": "llm-foundry", "-topo.txt": "nvidia-smi", ".xml": "nccl-topology", "deepspeed.json": "deepspeed", "nemo.yaml": "nemo",
           "container.yaml": "megatron-bridge"}
OF_CLUSTERS = {"nvidia-smi", "nccl-topology"}
# Of what an import prints that is not empty.
SAID = (b"model:", b"layers:", b"gpus_per_node:", b"optimizer:")

TABLE_HEAD = "# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20\n#\n# Using devices\n"
TABLE_ROWS = "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"


def format_of(name):
    return next((whose for ending, whose in FORMATS.items() if name.endswith(ending)), None)


def table(gpus=8, latency_us=20.0, bytes_per_us=2e5):
    """An all-reduce on one node: of a straight line in the bytes."""
    text = TABLE_HEAD + "".join(f"#  Rank {rank:2} Group  0 Pid   100 on      node1 device {rank:2} [0x00] NVIDIA H100 80GB HBM3\n" for rank in range(gpus))
    text += TABLE_ROWS
    for power in range(10, 32, 3):
        size = 2**power
        time_us = latency_us + size / bytes_per_us
        rate = size / time_us / 1000
        row = f"  {time_us:8.2f} {rate:7.2f} {rate * 2 * (gpus - 1) / gpus:7.2f}      0"
        text += f"{size:12} {size // 4:12}     float     sum      -1{row}{row}\n"
    return text


def trace(layers=6):
    """One rank: products and sums of PyTorch, each with its launch and its kernel."""
    events, host, device, number = [], 100.0, 200.0, 1
    shapes = [[2048, 1024], [1024, 4096], [4096, 4096], [2048, 8192]]
    for layer in range(layers):
        rows, columns = shapes[layer % len(shapes)]
        for name, dims, kernel in (("aten::mm", [[rows, columns], [columns, rows]], "nvjet_tst_128x128"), ("aten::add", [[rows, columns]] * 2, "vectorized_elementwise_kernel")):
            length = 5 + 2e-9 * rows * rows * columns if name == "aten::mm" else 5 + 6e-6 * rows * columns
            events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": 9, "ts": host, "dur": 8,
                        "args": {"External id": number, "Input Dims": dims, "Input type": ["c10::BFloat16"] * 2, "Concrete Inputs": ["", ""]}},
                       {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": host + 2, "dur": 3, "args": {"correlation": number}},
                       {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": device, "dur": length, "args": {"stream": 7, "correlation": number, "External id": number}}]
            host, device, number = host + 10, device + length + 2, number + 1
    return json.dumps({"traceEvents": events}, indent=0)
