/* Runs one collective on MPI and prints the simulated seconds of the slowest rank.
   time_collective COLLECTIVE BYTES [RANKS_PER_DOMAIN]      bytes: the full buffer of one rank, as in nccl-tests */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct job {
  int ranks, rank;
  int count; /* bytes of the full buffer */
  char *in, *out;
  MPI_Comm inside, across; /* hierarchical: the ranks of one's domain, and those with one's local rank */
};

static void all_reduce(struct job* j) { MPI_Allreduce(j->in, j->out, j->count, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD); }

static void all_gather(struct job* j) {
  int block = j->count / j->ranks;
  MPI_Allgather(j->in, block, MPI_CHAR, j->out, block, MPI_CHAR, MPI_COMM_WORLD);
}

static void reduce_scatter_on(char* in, char* out, int count, MPI_Comm group) {
  int ranks;
  MPI_Comm_size(group, &ranks);
  int* counts = malloc(sizeof(int) * (size_t)ranks);
  for (int i = 0; i < ranks; ++i) counts[i] = count / ranks;
  MPI_Reduce_scatter(in, out, counts, MPI_CHAR, MPI_MAX, group);
  free(counts);
}

static void reduce_scatter(struct job* j) { reduce_scatter_on(j->in, j->out, j->count, MPI_COMM_WORLD); }

static void broadcast(struct job* j) { MPI_Bcast(j->in, j->count, MPI_CHAR, 0, MPI_COMM_WORLD); }

static void all_to_all(struct job* j) {
  int block = j->count / j->ranks;
  MPI_Alltoall(j->in, block, MPI_CHAR, j->out, block, MPI_CHAR, MPI_COMM_WORLD);
}

static void send_recv(struct job* j) {
  int next = (j->rank + 1) % j->ranks, previous = (j->rank + j->ranks - 1) % j->ranks;
  MPI_Sendrecv(j->in, j->count, MPI_CHAR, next, 0, j->out, j->count, MPI_CHAR, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void hierarchical_all_reduce(struct job* j) {
  int locals;
  MPI_Comm_size(j->inside, &locals);
  int share = j->count / locals;
  reduce_scatter_on(j->in, j->out, j->count, j->inside);
  MPI_Allreduce(j->out, j->in, share, MPI_CHAR, MPI_MAX, j->across);
  MPI_Allgather(j->in, share, MPI_CHAR, j->out, share, MPI_CHAR, j->inside);
}

static void hierarchical_all_gather(struct job* j) {
  int domains, block = j->count / j->ranks;
  MPI_Comm_size(j->across, &domains);
  MPI_Allgather(j->in, block, MPI_CHAR, j->out, block, MPI_CHAR, j->across);
  MPI_Allgather(j->out, block * domains, MPI_CHAR, j->in, block * domains, MPI_CHAR, j->inside);
}

static void hierarchical_reduce_scatter(struct job* j) {
  int locals;
  MPI_Comm_size(j->inside, &locals);
  reduce_scatter_on(j->in, j->out, j->count, j->inside);
  reduce_scatter_on(j->out, j->in, j->count / locals, j->across);
}

static void hierarchical_all_to_all(struct job* j) {
  int domains, locals;
  MPI_Comm_size(j->across, &domains);
  MPI_Comm_size(j->inside, &locals);
  MPI_Alltoall(j->in, j->count / domains, MPI_CHAR, j->out, j->count / domains, MPI_CHAR, j->across);
  MPI_Alltoall(j->out, j->count / locals, MPI_CHAR, j->in, j->count / locals, MPI_CHAR, j->inside);
}

/* Everybody's part to its owner, and the sums to everybody. */
static void direct_all_reduce(struct job* j) {
  int block = j->count / j->ranks;
  MPI_Alltoall(j->in, block, MPI_CHAR, j->out, block, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Allgather(j->out, block, MPI_CHAR, j->in, block, MPI_CHAR, MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*run)(struct job*);
} collectives[] = {{"all-reduce", all_reduce},
                   {"all-gather", all_gather},
                   {"reduce-scatter", reduce_scatter},
                   {"broadcast", broadcast},
                   {"all-to-all", all_to_all},
                   {"send-recv", send_recv},
                   {"hierarchical-all-reduce", hierarchical_all_reduce},
                   {"hierarchical-all-gather", hierarchical_all_gather},
                   {"hierarchical-reduce-scatter", hierarchical_reduce_scatter},
                   {"hierarchical-all-to-all", hierarchical_all_to_all},
                   {"direct-all-reduce", direct_all_reduce}};

/* A barrier lets go of one rank before the other: all wait for a moment that lies ahead of everybody. SMPI's nanosleep takes simulated
 * time. */
static void start_together(void) {
  double now = MPI_Wtime(), latest = 0;
  MPI_Allreduce(&now, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  double wait = latest + 10 - MPI_Wtime();
  struct timespec pause = {.tv_sec = (time_t)wait, .tv_nsec = (long)((wait - (double)(time_t)wait) * 1e9)};
  nanosleep(&pause, NULL);
}

static double seconds(struct job* j, void (*run)(struct job*)) {
  double slowest = 0;
  start_together();
  double start = MPI_Wtime();
  run(j);
  double mine = MPI_Wtime() - start;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) return 2;
  struct job j;
  MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  int per_domain = argc > 3 ? atoi(argv[3]) : j.ranks;
  MPI_Comm_split(MPI_COMM_WORLD, j.rank / per_domain, j.rank, &j.inside);
  MPI_Comm_split(MPI_COMM_WORLD, j.rank % per_domain, j.rank, &j.across);
  j.count = atoi(argv[2]);
  j.in = calloc((size_t)j.count, 1);
  j.out = calloc((size_t)j.count, 1);
  int known = 0;
  for (size_t i = 0; i < sizeof collectives / sizeof *collectives; ++i) {
    if (strcmp(collectives[i].name, argv[1]) != 0) continue;
    known = 1;
    double time = seconds(&j, collectives[i].run);
    if (j.rank == 0) printf("%.12g\n", time);
  }
  free(j.in);
  free(j.out);
  MPI_Finalize();
  return known ? 0 : 2;
}
