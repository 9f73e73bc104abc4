"""Random clusters: shared and bundled NICs, meshes, PCIe boxes, supernodes, every kind of network, shared host links."""
import copy

NAMES = ["h100-sxm5-80g", "a100-sxm4-80g", "h800-sxm", "b200-sxm"]

# Without contention between computation and communication: laws that hold only then are tried on it.
NEUTRAL_GPU = {
    "source": "made up for the soak",
    "memory": "80 GiB",
    "memory_bandwidth": "2000 GB/s",
    "power_limit": "400 W",
    "launch": "3 us",
    "peak": {"bf16": "300 TFLOP/s", "fp16": "300 TFLOP/s", "fp8": "600 TFLOP/s"},
    "efficiency": {
        "gemm": {"bf16": {"model": "roofline", "compute": 0.6, "memory": 0.8}, "fp8": {"model": "roofline", "compute": 0.5, "memory": 0.8}},
        "attention": {"bf16": {"model": "roofline", "compute": 0.5, "memory": 0.8}},
        "memory_bound": {"model": "roofline", "memory": 0.8},
    },
}


def draw_cluster(rng, most_gpus=32):
    """A cluster of at most so many GPUs, as the value of a job's `cluster`."""
    per_node = rng.choice([1, 2, 4, 4, 8, 8, 8])
    kind = "none" if per_node == 1 else rng.choice(["nvswitch", "nvswitch", "nvswitch", "full_mesh", "pcie"])
    cluster = {
        "gpu": dict(NEUTRAL_GPU) if rng.random() < 0.5 else rng.choice(NAMES),
        "gpus_per_node": per_node,
        "nodes": rng.choice([1, 2, 2, 4, 4, 8] if 1 < per_node < 8 else [2, 4, 4]),
        "intra_node": {"kind": kind},
    }
    if kind != "none":
        cluster["intra_node"] |= {
            "bandwidth": f"{draw_scale_up(rng, kind)} GB/s",
            "efficiency": rng.choice([1, 0.8, 0.7]),
            "latency": f"{rng.choice([1, 3.3, 10])} us",
        }
    if kind != "pcie":
        cluster["host"] = {"bandwidth": f"{rng.choice([25, 63])} GB/s", "efficiency": rng.choice([1, 0.88]), "latency": "10 us"}
        if rng.random() < 0.4:
            cluster["host"]["gpus_per_link"] = rng.choice([each for each in (1, 2, 4) if per_node % each == 0])
    cluster["host_memory"] = {"size": "2 TB", "bandwidth": f"{rng.choice([200, 490])} GB/s"}
    if cluster["nodes"] > 1:
        add_supernode(rng, cluster)
        add_network(rng, cluster)
    cluster["name"] = describe(cluster)
    return cluster


def draw_scale_up(rng, kind):
    return rng.choice({"nvswitch": [150, 300, 450, 900], "full_mesh": [25, 50, 100], "pcie": [25, 63]}[kind])


def add_supernode(rng, cluster):
    per_node, nodes = cluster["gpus_per_node"], cluster["nodes"]
    if cluster["intra_node"]["kind"] not in ("nvswitch", "none") or rng.random() > 0.2:
        return
    together = rng.choice([each for each in (2, 4) if nodes % each == 0] or [nodes])
    same = per_node > 1 and rng.random() < 0.5
    cluster["supernode"] = {
        "gpus": together * per_node,
        "bandwidth": cluster["intra_node"]["bandwidth"] if same else f"{rng.choice([100, 300])} GB/s",
        "efficiency": cluster["intra_node"]["efficiency"] if same else 0.8,
        "latency": "4 us",
    }


def add_network(rng, cluster):
    per_node = cluster["gpus_per_node"]
    counts = [each for each in (1, 2, 4, 8) if each <= per_node] + [2 * per_node]
    cluster["nics"] = {
        "per_node": rng.choice(counts),
        "bandwidth": f"{rng.choice([100, 200, 400])} Gbps",
        "efficiency": rng.choice([1, 0.95]),
        "latency": f"{rng.choice([2, 6.6])} us",
    }
    if cluster["intra_node"]["kind"] != "pcie" and rng.random() < 0.2:
        cluster["pcie"] = f"{rng.choice([16, 32, 63])} GB/s"
    draw = rng.choice([draw_switch, draw_leaves, draw_leaves, draw_rails, draw_tree, draw_tree, draw_torus, draw_dragonfly, draw_graph])
    cluster["network"] = draw(rng, cluster)


def draw_switch(_rng, _cluster):
    return {"kind": "single_switch"}


def draw_leaves(rng, cluster):
    network = {"kind": "leaf_spine", "nodes_per_leaf": rng.choice(divisors(cluster["nodes"])), "oversubscription": rng.choice([1, 1, 2, 4])}
    if rng.random() < 0.3:
        network["spines"] = rng.choice([1, 2, 4])
    return network


def draw_rails(rng, cluster):
    return draw_leaves(rng, cluster) | {"kind": "rail_optimised", "separate_planes": rng.random() < 0.3}


def draw_tree(rng, cluster):
    pods = rng.choice(divisors(cluster["nodes"]))
    return {
        "kind": "fat_tree",
        "nodes_per_leaf": rng.choice(divisors(pods)),
        "nodes_per_pod": pods,
        "oversubscription": rng.choice([1, 2]),
        "pod_oversubscription": rng.choice([1, 2, 7]),
    }


def draw_torus(rng, cluster):
    nodes = cluster["nodes"]
    first = rng.choice(divisors(nodes))
    return {"kind": "torus", "dims": [first, nodes // first] if first < nodes else [nodes]}


def draw_dragonfly(rng, cluster):
    groups = rng.choice([each for each in divisors(cluster["nodes"]) if 2 <= each <= 4])
    routers = rng.choice(divisors(cluster["nodes"] // groups))
    return {
        "kind": "dragonfly",
        "groups": groups,
        "routers_per_group": routers,
        "nodes_per_router": cluster["nodes"] // groups // routers,
    }


def draw_graph(rng, cluster):
    """Two switches, the nodes' NICs on either, a few cables between them."""
    by_rail = rng.random() < 0.5
    names = ["east", "west"]
    network = {"kind": "graph", "switches": names}
    network["trunks"] = [{"between": names, "bandwidth": "400 Gbps", "cables": rng.choice([1, 4])}]
    nics = cluster["nics"]["per_node"]
    bundle = max(1, nics // cluster["gpus_per_node"])  # NICs of one GPU hang on one switch
    network["attach"] = [[names[(nic // bundle if by_rail else node) % 2] for nic in range(nics)] for node in range(cluster["nodes"])]
    return network


def divisors(number):
    return [each for each in range(1, number + 1) if number % each == 0]


def gpus_of(cluster):
    return cluster["gpus_per_node"] * cluster["nodes"]


def is_oversubscribed(cluster):
    """Whether trunks may limit what NICs inject: trees with a factor, and all networks that are no tree."""
    network = cluster.get("network", {"kind": "single_switch"})
    if network["kind"] in ("torus", "dragonfly", "graph"):
        return True
    return max(network.get("oversubscription", 1), network.get("pod_oversubscription", 1)) > 1


def shares_links(cluster):
    """Whether a price counts a GPU's share of a link that others may leave to it: NICs for several GPUs, trunks that may be full."""
    return is_oversubscribed(cluster) or cluster.get("nics", {}).get("per_node", cluster["gpus_per_node"]) < cluster["gpus_per_node"]


def is_neutral(cluster):
    """Computation and communication do not slow each other down."""
    return isinstance(cluster["gpu"], dict) and "contention" not in cluster["gpu"]


def describe(cluster):
    network = cluster.get("network", {"kind": "alone"})
    return f"{cluster['nodes']}x{cluster['gpus_per_node']}-{cluster['intra_node']['kind']}-{network['kind']}".replace("_", "-")


def faster(cluster, rng):
    """The same cluster with one of its bandwidths doubled, and which."""
    better = copy.deepcopy(cluster)
    places = [(part, "bandwidth") for part in ("intra_node", "supernode", "nics", "host", "host_memory") if "bandwidth" in better.get(part, {})]
    part, key = rng.choice(places)
    number, unit = better[part][key].split(" ")
    better[part][key] = f"{2 * float(number):g} {unit}"
    return better, f"{part}.{key}"


