/* Fisher-Yates. Its random numbers are computed from positions, so any epoch can come first. */
#include "order.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/philox.h"

/* Streams keep these numbers apart from other uses of the seed. */
enum {
  ORDER_STREAM = 0x6f726472,
  PART_STREAM = 0x70617274,
  CLASS_STREAM = 0x636c6173,
  TURN_STREAM = 0x7475726e
};

/* Returns number i of the sequence, in [0, bound). The bias is below bound / 2^64. */
static int64_t below(uint64_t seed, uint64_t stream, int64_t i, int64_t bound)
{
  Philox p = philox(seed, (uint64_t)i, stream);
  uint64_t bits = (uint64_t)p.word[0] << 32 | p.word[1];
  return (int64_t)(((unsigned __int128)bits * (uint64_t)bound) >> 64);
}

/* Permutes the n elements with the random numbers from `first` on. */
static void permute(int64_t *order, int64_t n, uint64_t seed, uint64_t stream, int64_t first)
{
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = below(seed, stream, first + i, i + 1), swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}

static void shuffle(int64_t *order, int64_t n, uint64_t seed, uint64_t stream)
{
  for (int64_t i = 0; i < n; i++) order[i] = i;
  permute(order, n, seed, stream, 0);
}

/* Returns a stream of epoch and block. */
static uint64_t stream_of(uint32_t which, uint32_t block, int64_t epoch)
{
  return (uint64_t)which << 32 ^ (uint64_t)epoch ^ (uint64_t)block << 56;
}

/* Shuffles with a stream of epoch and block, so that no two of them have the same order. */
void order_shuffle(int64_t *order, int64_t n, uint64_t seed, uint32_t block, int64_t epoch)
{
  shuffle(order, n, seed, stream_of(ORDER_STREAM, block, epoch));
}

/* ---- classes, spread evenly ----
 *
 * Note [even classes]
 * Item j of a class of k samples, among n samples in all, gets a place from j n / k rounded down to
 * (j + 1) n / k rounded up, exclusive. If all items stay within these bounds, the first m places
 * have more than m k / n - 1 and less than m k / n + 1 samples of the class, for every m. The item
 * with the earliest end among those that have begun gets the next place. This schedule meets all
 * ends: the classes are tasks of a processor that is always busy, and that order is optimal. */

typedef struct Item {
  int64_t sample, label, rank; /* rank: its position in the shuffled order */
  int64_t begin, end;          /* bounds of its place */
} Item;

static int by_label(const void *a, const void *b)
{
  const Item *x = a, *y = b;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  return x->rank < y->rank ? -1 : 1;
}

static int by_begin(const void *a, const void *b)
{
  const Item *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->rank < y->rank ? -1 : 1;
}

static bool ends_before(const Item *a, const Item *b)
{
  return a->end != b->end ? a->end < b->end : a->rank < b->rank;
}

static void set_bounds(Item *item, int64_t n)
{
  for (int64_t first = 0, k; first < n; first += k) {
    for (k = 1; first + k < n && item[first + k].label == item[first].label;) k++;
    for (int64_t j = 0; j < k; j++) {
      item[first + j].begin = (int64_t)((__int128)j * n / k);
      item[first + j].end = (int64_t)(((__int128)(j + 1) * n + k - 1) / k);
    }
  }
}

/* A heap: no item ends before its parent, (i - 1) / 2. */
static void heap_add(Item **heap, int64_t n, Item *item)
{
  int64_t i = n;
  for (; i && ends_before(item, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = item;
}

/* Removes the first item of n. */
static Item *heap_take(Item **heap, int64_t n)
{
  Item *first = heap[0], *last = heap[n - 1];
  int64_t i = 0;
  for (int64_t k = 1; k < n - 1; k = 2 * i + 1) {
    if (k + 1 < n - 1 && ends_before(heap[k + 1], heap[k])) k++;
    if (!ends_before(heap[k], last)) break;
    heap[i] = heap[k];
    i = k;
  }
  heap[i] = last;
  return first;
}

/* ---- classes, equally often ---- */

bool balance_open(Balance *b, const int64_t *label, int64_t n, const int64_t *ignored)
{
  Item *item = malloc((size_t)n * sizeof *item + 1);
  *b = (Balance){.samples = 0};
  b->sample = malloc((size_t)n * sizeof *b->sample + 1);
  b->drawn = malloc((size_t)n * sizeof *b->drawn + 1);
  b->start = malloc(((size_t)n + 1) * sizeof *b->start);
  b->turn = malloc((size_t)n * sizeof *b->turn + 1);
  bool good = item && b->sample && b->drawn && b->start && b->turn;
  for (int64_t i = 0; good && i < n; i++)
    if (!ignored || label[i] != *ignored)
      item[b->samples++] = (Item){.sample = i, .label = label[i], .rank = i};
  if (good) qsort(item, (size_t)b->samples, sizeof *item, by_label);
  for (int64_t i = 0; good && i < b->samples; i++) {
    b->sample[i] = item[i].sample;
    if (!i || item[i].label != item[i - 1].label) b->start[b->classes++] = i;
  }
  if (good) b->start[b->classes] = b->samples;
  free(item);
  return good;
}

void balance_close(Balance *b)
{
  free(b->sample);
  free(b->drawn);
  free(b->start);
  free(b->turn);
  *b = (Balance){0};
}

void order_balance(const Balance *b, int64_t *order, int64_t n, uint64_t seed, uint32_t block,
                   int64_t epoch)
{
  memcpy(b->drawn, b->sample, (size_t)b->samples * sizeof *b->drawn);
  for (int64_t c = 0; c < b->classes; c++) {
    int64_t begin = b->start[c], k = b->start[c + 1] - begin;
    permute(b->drawn + begin, k, seed, stream_of(CLASS_STREAM, block, epoch), begin);
    b->turn[c] = c;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t round = i / b->classes, at = i % b->classes;
    if (!at) permute(b->turn, b->classes, seed, stream_of(TURN_STREAM, block, epoch), i);
    int64_t c = b->turn[at], begin = b->start[c];
    order[i] = b->drawn[begin + round % (b->start[c + 1] - begin)];
  }
}

bool order_part(int64_t *order, int64_t n, uint64_t seed, const int64_t *label)
{
  shuffle(order, n, seed, (uint64_t)PART_STREAM << 32);
  if (!label) return true;
  Item *item = malloc((size_t)n * sizeof *item + 1);
  Item **heap = malloc((size_t)n * sizeof *heap + 1);
  if (item && heap) {
    for (int64_t i = 0; i < n; i++)
      item[i] = (Item){.sample = order[i], .label = label[order[i]], .rank = i};
    qsort(item, (size_t)n, sizeof *item, by_label);
    set_bounds(item, n);
    qsort(item, (size_t)n, sizeof *item, by_begin);
    int64_t begun = 0, held = 0;
    for (int64_t place = 0; place < n; place++) {
      while (begun < n && item[begun].begin <= place) heap_add(heap, held++, &item[begun++]);
      order[place] = heap_take(heap, held--)->sample;
    }
  }
  bool good = item && heap;
  free(item);
  free(heap);
  return good;
}
