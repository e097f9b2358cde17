/* The memory of one compile. All memory that the compiler allocates is in one arena and is freed
 * with the arena. Only nvrtc/, which several threads call, uses malloc. Allocation never returns
 * NULL: if memory runs out, the program prints a message and exits with status 5. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Arena Arena;

Arena *arena_create(void);
void arena_destroy(Arena *a); /* `a` may be NULL */

void *arena_alloc(Arena *a, size_t size, size_t align); /* returns zeroed memory */
void *arena_grow(Arena *a, const void *old, size_t old_size, size_t new_size, size_t align);
/* arena_release() frees all memory that was allocated since arena_mark(), for work whose result is
 * only a number. Between the two calls, no memory that is used later may be allocated or grow. */
typedef struct ArenaMark {
  void *block;
  size_t used;
} ArenaMark;
ArenaMark arena_mark(const Arena *a);
void arena_release(Arena *a, ArenaMark mark);
/* Prints a message and exits with status 5. Called if an allocation of the compiler fails. */
_Noreturn void arena_out_of_memory(void);
char *arena_strndup(Arena *a, const char *s, size_t n); /* NUL-terminates the copy */
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
/* Returns the shortest text, with at least `least` digits, that strtod reads as exactly v: "0.1",
 * "1e+09". */
const char *arena_number(Arena *a, double v, int least);
/* Escapes `s` for printing: common/shown.h. Bytes in `keep` are not escaped. */
const char *arena_shown(Arena *a, const char *s, const char *keep);

#define arena_new(a, T)      ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n), _Alignof(T)))

/* A growing array: declare it as `VEC(Node) nodes;`, add with vec_push, read .at[i] and .n. The
 * arena owns its memory, so there is nothing to free. The most recent allocation grows in place.
 * Any other array is copied and its old memory stays unused: doubling keeps this waste below the
 * final size. */
#define VEC(T)                                                                                     \
  struct {                                                                                         \
    T *at;                                                                                         \
    uint32_t n, cap;                                                                               \
  }
#define vec_push(a, v, ...)                                                                        \
  (vec_reserve_((a), (void **)&(v)->at, &(v)->cap, (v)->n, sizeof *(v)->at),                       \
   (v)->at[(v)->n++] = (__VA_ARGS__))
void vec_reserve_(Arena *a, void **at, uint32_t *cap, uint32_t n, size_t size);

/* Text that grows, for printing into memory. */
typedef struct Text {
  Arena *arena;
  char *at; /* always NUL-terminated */
  size_t n, cap;
} Text;
Text text_new(Arena *a);
void text_init(Text *t, Arena *a);
void text_add(Text *t, const char *s, size_t n);
void text_puts(Text *t, const char *s);
void text_printf(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
