/* Memory of one compile. Everything the compiler makes lives in one arena and is freed with it;
 * nothing in compiler/ calls malloc except arena.c. Allocation never returns NULL: when the
 * machine is out of memory the program ends with exit status 5 and a message. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

Arena *arena_create(void);
void arena_destroy(Arena *a); /* NULL is fine */

void *arena_alloc(Arena *a, size_t size, size_t align); /* zeroed */
void *arena_grow(Arena *a, const void *old, size_t old_size, size_t new_size, size_t align);
/* What was allocated since the mark is given back: for work whose result is a number. Nothing that
 * outlives it may have been allocated or have grown in between. */
typedef struct ArenaMark {
  void *block;
  size_t used;
} ArenaMark;
ArenaMark arena_mark(const Arena *a);
void arena_release(Arena *a, ArenaMark mark);
/* What every allocation of the compiler does when it fails: says so and ends with status 5. */
_Noreturn void arena_out_of_memory(void);
char *arena_strndup(Arena *a, const char *s, size_t n); /* adds the final zero */
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
/* With as few digits, `least` at least, as give v again: "0.1", "1e+09". */
const char *arena_number(Arena *a, double v, int least);
/* So that it can be printed: runtime/plan/shown.h. Bytes that `keep` lists stay. */
const char *arena_shown(Arena *a, const char *s, const char *keep);

#define arena_new(a, T)      ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n), _Alignof(T)))

/* A growing array: declare as `VEC(Node) nodes;`, add with vec_push, read .at[i] and .n.
 * Its memory belongs to the arena: what was allocated last grows where it is, else growing leaves
 * the old memory behind (doubling keeps the waste under the final size); there is nothing to free.
 */
#define VEC(T)                                                                                     \
  struct {                                                                                         \
    T *at;                                                                                         \
    uint32_t n, cap;                                                                               \
  }
#define vec_push(a, v, ...)                                                                        \
  (vec_reserve_((a), (void **)&(v)->at, &(v)->cap, (v)->n, sizeof *(v)->at),                       \
   (v)->at[(v)->n++] = (__VA_ARGS__))
void vec_reserve_(Arena *a, void **at, uint32_t *cap, uint32_t n, size_t size);

/* Text that grows; used for everything that is printed into memory. */
typedef struct Text {
  Arena *arena;
  char *at; /* always ends in a zero */
  size_t n, cap;
} Text;
Text text_new(Arena *a);
void text_init(Text *t, Arena *a);
void text_add(Text *t, const char *s, size_t n);
void text_puts(Text *t, const char *s);
void text_printf(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
